/* WindowedKeys: reads a topic of weir's results from its beginning to its end with Kafka Streams' own deserializers of
 * windowed keys; prints KEY, START, END (ms) and the value, apart by tabs.
 *   WindowedKeys BROKERS TOPIC time SIZE-MS | session */
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.kstream.SessionWindowedDeserializer;
import org.apache.kafka.streams.kstream.TimeWindowedDeserializer;
import org.apache.kafka.streams.kstream.Windowed;

public class WindowedKeys {
	public static void main(String[] args) {
		Properties properties = new Properties();
		properties.put("bootstrap.servers", args[0]);
		properties.put("isolation.level", "read_committed");
		Deserializer<Windowed<String>> keys = args[2].equals("session")
				? new SessionWindowedDeserializer<>(new StringDeserializer())
				: new TimeWindowedDeserializer<>(new StringDeserializer(), Long.parseLong(args[3]));
		try (KafkaConsumer<Windowed<String>, String> consumer =
				new KafkaConsumer<>(properties, keys, new StringDeserializer())) {
			List<TopicPartition> partitions = new ArrayList<>();
			for (PartitionInfo p : consumer.partitionsFor(args[1]))
				partitions.add(new TopicPartition(p.topic(), p.partition()));
			consumer.assign(partitions);
			consumer.seekToBeginning(partitions);
			Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
			while (ends.entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue()))
				for (ConsumerRecord<Windowed<String>, String> r : consumer.poll(Duration.ofMillis(500)))
					System.out.println(r.key().key() + "\t" + r.key().window().start() + "\t" + r.key().window().end()
							+ "\t" + r.value());
		}
	}
}
