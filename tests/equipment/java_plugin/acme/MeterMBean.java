package acme;

/** What is measured of a task. */
public interface MeterMBean {
    long getCountedSoFar();

    String getSecret();
}
