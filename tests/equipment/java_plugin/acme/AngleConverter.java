package acme;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.storage.Converter;

/** Writes a value between angle brackets. */
public class AngleConverter implements Converter {
    @Override
    public void configure(Map<String, ?> configs, boolean isKey) {
    }

    @Override
    public byte[] fromConnectData(String topic, Schema schema, Object value) {
        return value == null ? null : ("<" + value + ">").getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public SchemaAndValue toConnectData(String topic, byte[] value) {
        String text = new String(value, StandardCharsets.UTF_8);
        return new SchemaAndValue(Schema.STRING_SCHEMA, text.substring(1, text.length() - 1));
    }
}
