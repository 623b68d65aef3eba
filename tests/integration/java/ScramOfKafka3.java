/* ScramOfKafka3: Kafka's class that checks a SCRAM login, made to compare the client's nonce as brokers before 4.0 did: a
 * librdkafka before 2.6.1 sends its own part of it twice, which a broker from 4.0 on refuses.
 *   java ScramOfKafka3.java KAFKA-CLIENTS-JAR FOLDER     writes the class below FOLDER, which goes before the jars */
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipFile;

public class ScramOfKafka3 {
	static final String NAME = "org/apache/kafka/common/security/scram/internals/ScramSaslServer.class";

	public static void main(String[] args) throws Exception {
		Path to = Path.of(args[1], NAME);
		Files.createDirectories(to.getParent());
		try (ZipFile jar = new ZipFile(args[0])) {
			Files.write(to, changed(jar.getInputStream(jar.getEntry(NAME)).readAllBytes()));
		}
	}

	/* Every call of String.equals becomes one of String.endsWith: both names and types stand in one entry of the
	 * constant pool, which is pointed at two new ones behind the last. */
	static byte[] changed(byte[] old) throws Exception {
		DataInputStream in = new DataInputStream(new ByteArrayInputStream(old));
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();
		DataOutputStream out = new DataOutputStream(bytes);
		out.writeLong(in.readLong()); // magic, version
		int count = in.readUnsignedShort();
		String[] text = new String[count];
		out.writeShort(count + 2);
		int equals = 0;
		for (int pass = 0; pass < 2; pass++) { // the names may stand behind the pairs
			DataInputStream from = pass == 0 ? new DataInputStream(new ByteArrayInputStream(old, 10, old.length)) : in;
			for (int i = 1; i < count; i++) {
				int tag = from.readUnsignedByte();
				DataOutputStream sink = pass == 1 ? out : new DataOutputStream(new ByteArrayOutputStream());
				sink.writeByte(tag);
				switch (tag) {
				case 1: text[i] = from.readUTF(); sink.writeUTF(text[i]); break;
				case 5: case 6: sink.writeLong(from.readLong()); i++; break;
				case 7: case 8: case 16: case 19: case 20: sink.writeShort(from.readShort()); break;
				case 15: sink.writeByte(from.readByte()); sink.writeShort(from.readShort()); break;
				case 12:
					int name = from.readUnsignedShort(), type = from.readUnsignedShort();
					boolean hit = pass == 1 && text[name].equals("equals");
					equals += hit ? 1 : 0;
					sink.writeShort(hit ? count : name);
					sink.writeShort(hit ? count + 1 : type);
					break;
				default: sink.writeInt(from.readInt());
				}
			}
		}
		if (equals != 1)
			throw new IllegalStateException("another version of " + NAME);
		out.writeByte(1);
		out.writeUTF("endsWith");
		out.writeByte(1);
		out.writeUTF("(Ljava/lang/String;)Z");
		out.write(in.readAllBytes());
		return bytes.toByteArray();
	}
}
