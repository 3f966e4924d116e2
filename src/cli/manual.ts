/** The texts of `patchmirror --help`. */
export const DESCRIPTION =
  'Keeps a faithful local copy of a vulnerability-remediation service: its public feeds (OSV records, patch ' +
  'feed, system matrix) and, with a credential, the catalog that the account subscribes to. Serves it under ' +
  'the same paths, so that a scanner pointed at the mirror does not notice.'

/** Text that `patchmirror --help` prints below the list of commands. */
export const AFTER = `
EXIT STATUS
  0   complete: the stored data equals upstream's, verified
  1   failed: nothing was changed, the last good snapshot is still served; for
      commands that ask the service: it refused, or a webhook test was not
      delivered; for "webhooks doctor": not accepted
  2   usage or settings are wrong, or the data folder is in use
  3   partial: published, but something that upstream lists could not be
      fetched, or a stored source has no credential any more; for "search",
      "show", "tags", "findings", "patches", "changes", "since", "vex": not
      mirrored here, so not known (1: not found)
  4   quarantined: too much would be removed, or what changes is doubtful; see
      "patchmirror runs", then approve or reject

SETTINGS
  config/default.yaml names every setting with its reason. A file given by
  --config or PATCHMIRROR_CONFIG overrides it, the environment overrides both:
  upstream.apiRoot is PATCHMIRROR_UPSTREAM_API_ROOT. Secrets are also read from
  files: PATCHMIRROR_UPSTREAM_API_KEY_FILE.
  "patchmirror config" shows what is in force.

FILES
  data/mirror.db     all stored data (data.dir sets the folder)
  data/webhooks.db   received deliveries with their states, and events that
                     wait to be sent to relay targets
  data/derived/      all.zip and what scanners read (views/), rebuilt from the
                     database; safe to delete while nothing runs
  data/downloads/    unfinished downloads; they resume where they stopped
  data/local.key     the first key for the private paths, made by the first
                     "patchmirror serve"
  data/webhook-secrets.json
                     what webhooks are signed with (webhooks.secretFile)

EXAMPLES
  PATCHMIRROR_UPSTREAM_API_ROOT=https://api.example.com patchmirror serve
  patchmirror sync osv --reconcile
  patchmirror status
  patchmirror search CVE-2026-12345
  patchmirror runs 42 && patchmirror approve 42
  patchmirror export-db osv-scanner /var/lib/osv-db
  patchmirror api-keys create mirror --role readonly --out /run/secrets/key
  patchmirror webhooks register --url https://hooks.example.com/-/webhooks
  patchmirror webhooks inbox
`
