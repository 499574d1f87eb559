package acme;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.function.LongSupplier;
import javax.management.JMException;
import javax.management.ObjectName;

/** The MBean of a task. */
public class Meter implements MeterMBean {
    private final LongSupplier next;

    Meter(LongSupplier next) {
        this.next = next;
    }

    static void register(Map<String, String> props, LongSupplier next) {
        try {
            ManagementFactory.getPlatformMBeanServer().registerMBean(new Meter(next), name(props));
        } catch (JMException error) {
            throw new IllegalStateException(error);
        }
    }

    static void unregister(Map<String, String> props) {
        try {
            ManagementFactory.getPlatformMBeanServer().unregisterMBean(name(props));
        } catch (JMException error) {
            throw new IllegalStateException(error);
        }
    }

    private static ObjectName name(Map<String, String> props) throws JMException {
        String of = ObjectName.quote(props.get("name"));
        return new ObjectName("acme:type=meter,connector=" + of + ",task=task-" + props.get("part"));
    }

    @Override
    public long getCountedSoFar() {
        return next.getAsLong();
    }

    @Override
    public String getSecret() {
        return "XxHiddenxX";
    }
}
