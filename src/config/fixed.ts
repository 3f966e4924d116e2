/**
 * Figures that no two installations need to be different, by the section that the program reads them in. Here are those that
 * several parts read, or that callers with less patience replace, as the doctor, the relay and tests do; each other one stands
 * beside the code that uses it.
 */
export const FIXED = {
  upstream: {
    /** Deadline of one JSON request, milliseconds: a server that sends one byte a second must not block a run for ever. */
    requestTimeoutMs: 60_000,
    /** A transfer that is too slow for so long is given up and tried again: it finds a connection that died silently. */
    lowSpeedSeconds: 30,
    /** Attempts after the first: four cover a restart of the service, and the next run covers a longer outage. */
    retries: 4,
    /** The longest pause between two attempts, milliseconds: it grows from half a second, and is random in part. */
    retryMaxMs: 30_000,
  },
  osv: {
    /** With more changed records than this one large download is quicker than the many small ones. */
    archiveThreshold: 250,
  },
  sync: {
    /** The longest random delay before a scheduled start: mirrors with the same schedule must not arrive together. */
    jitterSeconds: 60,
    /** A daemon makes at its start, once, what was missed while it did not run; tests that want no run begin without. */
    catchUp: true,
  },
  verify: {
    /** When all that is stored is verified: weekly, on Sunday at a quiet hour, in a thread of the lowest priority. */
    schedule: '43 4 * * 0',
  },
  webhooks: {
    /** The file of secrets with their labels and dates, in data.dir; it is read again when its content changes. */
    secretFile: 'webhook-secrets.json',
    /** Events that follow within this time wait for one refresh: a release announces its tags one by one. */
    debounceMs: 2000,
  },
  bundle: {
    /** How often the inbox is looked at; a file that did not change meanwhile has arrived whole. */
    pollSeconds: 10,
  },
  fleet: {
    /** How often a follower looks for the next generation: the store is asked 8,640 times a day. */
    pollSeconds: 10,
    /** A follower that is further behind is not ready: two polls until a generation is served, and ample time to import it. */
    maxLagSeconds: 60,
  },
}
