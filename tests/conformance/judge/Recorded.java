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
	/** A record of a topic. */
	public record Rec(byte[] key, byte[] value, long timestamp) {}

	private static final int PARTITIONS_MAX = 100;

	private Recorded() {}

	private static Path file(Path folder, String topic, int partition) {
		return folder.resolve(topic + "-" + partition).resolve("00000000000000000000.log");
	}

	/** Appends the records to the topic's one partition from offset on, in batches of up to most records. */
	public static void append(Path folder, String topic, long offset, List<Rec> records, int most, Random rnd) throws IOException {
		append(folder, topic, 0, offset, records, most, rnd);
	}

	public static void append(Path folder, String topic, int partition, long offset, List<Rec> records, int most, Random rnd) throws IOException {
		Path path = file(folder, topic, partition);
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

	/** All records of a topic, partition after partition; none when there is no such topic. */
	public static List<Rec> read(Path folder, String topic) throws IOException {
		List<Rec> out = new ArrayList<>();
		for (int p = 0; p < PARTITIONS_MAX; p++)
			if (file(folder, topic, p).toFile().exists())
				read(file(folder, topic, p).toFile(), out);
		return out;
	}

	private static void read(File log, List<Rec> out) throws IOException {
		try (FileRecords records = FileRecords.open(log, false)) {
			for (RecordBatch batch : records.batches()) {
				batch.ensureValid();
				if (batch.isControlBatch())
					continue;
				for (Record r : batch)
					out.add(new Rec(bytes(r.key()), bytes(r.value()), r.timestamp()));
			}
		}
	}

	private static byte[] bytes(ByteBuffer b) {
		if (b == null)
			return null;
		byte[] out = new byte[b.remaining()];
		b.duplicate().get(out);
		return out;
	}
}
