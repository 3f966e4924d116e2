/**
 * Figures that no two installations need to be different, by the section that the program reads them in. Callers with less
 * patience replace them, as the doctor and the relay do.
 */
export const FIXED = {
  upstream: {
    /** Deadline of one JSON request, milliseconds: a server that sends one byte a second must not block a run for ever. */
    requestTimeoutMs: 60_000,
    /** A transfer slower than this for `lowSpeedSeconds` is given up and tried again: it finds a connection that died silently. */
    lowSpeedBytesPerSecond: 1000,
    lowSpeedSeconds: 30,
    /** Attempts after the first: four cover a restart of the service, and the next run covers a longer outage. */
    retries: 4,
    /** The longest pause between two attempts, milliseconds: it grows from half a second, and is random in part. */
    retryMaxMs: 30_000,
  },
}
