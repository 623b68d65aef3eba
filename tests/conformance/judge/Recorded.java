/* Recorded.java: recorded topics written and read by Kafka's own classes, so that the judges share no code with weir. */
package judge;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

public final class Recorded {
	/** A record of a topic with one partition. */
	public record Rec(byte[] key, byte[] value, long timestamp) {}

	private Recorded() {}

	private static Path file(Path folder, String topic) {
		return folder.resolve(topic + "-0").resolve("00000000000000000000.log");
	}

	/** Appends the records from offset on, in batches of up to most records. */
	public static void append(Path folder, String topic, long offset, List<Rec> records, int most, Random rnd) throws IOException {
		Path path = file(folder, topic);
		Files.createDirectories(path.getParent());
		try (FileChannel out = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
			for (int i = 0; i < records.size();) {
				int n = Math.min(records.size() - i, 1 + rnd.nextInt(most));
				MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(4096), RecordBatch.MAGIC_VALUE_V2,
					Compression.NONE, TimestampType.CREATE_TIME, offset);
				for (int end = i + n; i < end; i++, offset++) {
					Rec r = records.get(i);
					b.append(r.timestamp, r.key, r.value);
				}
				ByteBuffer bytes = b.build().buffer();
				while (bytes.hasRemaining())
					out.write(bytes);
			}
		}
	}

	/** All records of a topic; none when there is no such topic. */
	public static List<Rec> read(Path folder, String topic) throws IOException {
		List<Rec> out = new ArrayList<>();
		File log = file(folder, topic).toFile();
		if (!log.exists())
			return out;
		try (FileRecords records = FileRecords.open(log, false)) {
			for (RecordBatch batch : records.batches()) {
				batch.ensureValid();
				if (batch.isControlBatch())
					continue;
				for (Record r : batch)
					out.add(new Rec(bytes(r.key()), bytes(r.value()), r.timestamp()));
			}
		}
		return out;
	}

	private static byte[] bytes(ByteBuffer b) {
		if (b == null)
			return null;
		byte[] out = new byte[b.remaining()];
		b.duplicate().get(out);
		return out;
	}
}
