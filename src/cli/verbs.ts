import { REGISTER, ROTATE, DOCTOR, MIRROR_DOCTOR, SUPPORT } from './after-texts.ts'

/** An option of a command: its flags, its description, and its default. */
type Flag = readonly [flags: string, description: string, byDefault?: string]

/** The code of a command: called with the command's arguments and then its options; returns the exit code. */
type Action = (...given: never[]) => number | Promise<number>

/** A command of the command line; without `load` a group of those whose path begins with its own. */
export interface Verb {
  /** Its words after `patchmirror`, such as `webhooks register`; a group comes before what belongs to it. */
  readonly path: string
  /** As commander writes them: `<required>`, `[optional]`, `<several...>`. */
  readonly arguments?: string
  readonly summary: string
  readonly options?: readonly Flag[]
  /** Text below the list of options. */
  readonly after?: string
  /** Loads the code when the command is called, so that --help does not wait for the database or the network. */
  readonly load?: () => Promise<Action>
}

const JSON_FLAG: Flag = ['--json', 'print JSON']
const OUT: Flag = ['--out <file>', 'write the secret into this new file, not to the terminal']
const SECRETS: Flag = ['--secret-file <file>', 'secrets, one a line; default: those stored here']
const URL_FLAG: Flag = ['--url <url>', 'where events are sent: https://…/-/webhooks']
const TEST_TAG: Flag = [
  '--test-tag <id>',
  'test it with the tag of this id, as /v1/tags/ has it; default: one that is mirrored',
]

const loadServe = async (): Promise<Action> => {
  process.on('SIGHUP', () => undefined) // it never ends the daemon, not even while that is being loaded
  return (await import('./mirror/serve.ts')).serveCommand
}

// prettier-ignore
/** Every command, in the order of the help pages. */
export const VERBS: readonly Verb[] = [
  { path: 'serve', summary: 'run the daemon: sync on schedule, serve the mirror',
    options: [['--offline', 'target mirror behind an air gap: make no connections, serve what was imported']],
    load: loadServe },
  { path: 'sync', arguments: '[source...]',
    summary: 'sync now: feeds, osv, catalog, identity, or what is set up',
    options: [
      ['--full', 'trust nothing that is known: fetch and compare everything'],
      ['--reconcile', 'find changes that lists do not announce (osv, catalog)'],
      ['--dry-run', 'say what would change, store nothing'], JSON_FLAG,
    ], load: async () => (await import('./mirror/sync.ts')).syncCommand },
  { path: 'status', summary: 'how fresh everything is',
    options: [
      ['--max-age <age>', 'exit with 3 when a source is older than this, such as 90m, 26h or 7d'],
      ['--watch', 'show it again every two seconds until Ctrl-C'], JSON_FLAG,
    ], load: async () => (await import('./mirror/status.ts')).statusCommand },
  { path: 'runs', arguments: '[run]', summary: 'the run log, or all about one run',
    options: [['--failed', 'only runs that failed, are partial or in quarantine'], ['--limit <n>', 'how many runs', '20'], JSON_FLAG],
    load: async () => (await import('./mirror/runs.ts')).runsCommand },
  { path: 'approve', arguments: '<run>', summary: 'let in what a quarantined run refused',
    load: async () => (await import('./mirror/quarantine.ts')).approveCommand },
  { path: 'reject', arguments: '<run>', summary: 'keep refusing what a quarantined run refused',
    load: async () => (await import('./mirror/quarantine.ts')).rejectCommand },
  { path: 'verify', summary: 'check every stored byte against its digest',
    options: [['--repair', 'fetch what is damaged again'], JSON_FLAG],
    load: async () => (await import('./mirror/verify.ts')).verifyCommand },
  { path: 'config', summary: 'the settings in force and where each came from',
    options: [JSON_FLAG], load: async () => (await import('./mirror/config.ts')).configCommand },
  { path: 'config check', arguments: '<file>',
    summary: 'check a file of settings, with the environment over it: all problems at once; exit status 2 for any',
    options: [JSON_FLAG], load: async () => (await import('./mirror/config.ts')).checkConfigCommand },
  { path: 'config schema', summary: 'print the JSON Schema of a file of settings, for editors',
    load: async () => (await import('./mirror/config.ts')).configSchemaCommand },
  { path: 'reload', summary: 'have the running daemon read its settings and files again',
    load: async () => (await import('./mirror/reload.ts')).reloadCommand },
  { path: 'health', summary: 'ask the running daemon whether it is well',
    options: [['--ready', 'whether everything is fresh enough, too']],
    load: async () => (await import('./mirror/health.ts')).healthCommand },
  { path: 'doctor', summary: 'check settings, data folder, network, credential and all else; say what to do',
    options: [JSON_FLAG], after: MIRROR_DOCTOR,
    load: async () => (await import('./doctor/doctor.ts')).mirrorDoctorCommand },
  { path: 'support', arguments: '<file>',
    summary: 'write what a report of a problem needs into a new zip file, without secrets',
    options: [['--log <file>', 'also the end of this log file of the daemon']], after: SUPPORT,
    load: async () => (await import('./doctor/support.ts')).supportCommand },
  { path: 'export-db', arguments: '<scanner> <dir>',
    summary: 'write the offline database of a scanner (osv-scanner) to a folder',
    options: [['--ecosystem <name...>', 'only these; else all, and what is gone is removed'], JSON_FLAG],
    load: async () => (await import('./mirror/export-db.ts')).exportDbCommand },

  { path: 'backup', arguments: '<file>',
    summary: 'write a checked copy of the databases, keys and webhook secrets, also beside a running daemon',
    options: [
      ['--private', 'only what no sync and no bundle brings back: keys, secrets, identity, ledger, deliveries'],
      ['--force', 'replace a file of this name'], JSON_FLAG,
    ], load: async () => (await import('./backup/backup.ts')).backupCommand },
  { path: 'restore', arguments: '<file>', summary: 'restore a backup into an empty data folder (data.dir)',
    options: [
      ['--new-identity', 'be another mirror in bundles: where the old one may still run'], JSON_FLAG,
    ], load: async () => (await import('./backup/restore.ts')).restoreCommand },

  { path: 'keys', summary: 'local keys: who may read the private paths of this mirror' },
  { path: 'keys create', summary: 'make a key and show it, once',
    options: [
      ['--name <name>', 'whose it is, for the list and the log'],
      ['--out <file>', 'write it to a new file that only you may read, instead'],
    ], load: async () => (await import('./mirror/keys.ts')).createKeyCommand },
  { path: 'keys list', summary: 'every key ever made, without the keys themselves',
    options: [JSON_FLAG], load: async () => (await import('./mirror/keys.ts')).listKeysCommand },
  { path: 'keys revoke', arguments: '<id>', summary: 'make a key worthless, at once',
    load: async () => (await import('./mirror/keys.ts')).revokeKeyCommand },

  { path: 'relay', summary: 'whom this mirror passes events on to' },
  { path: 'relay status', summary: 'the state of each target',
    options: [JSON_FLAG], load: async () => (await import('./mirror/relay.ts')).relayStatusCommand },
  { path: 'relay enable', arguments: '<id>',
    summary: 'send to a disabled target again; try a failing one at once',
    load: async () => (await import('./mirror/relay.ts')).enableTargetCommand },
  { path: 'relay secret', summary: 'what a receiver needs to verify what this mirror passes on',
    load: async () => (await import('./mirror/relay.ts')).relaySecretCommand },

  { path: 'keygen', arguments: '<file>', summary: 'make a key pair that signs bundles: FILE and FILE.pub',
    load: async () => (await import('./bundle/keygen.ts')).keygenCommand },
  { path: 'export', arguments: '<file>', summary: 'write what is mirrored into a signed bundle',
    options: [
      ['--since <state>', 'only what changed since an export, by its sequence or a snapshot id'],
      ['--for <need>', 'only what a mirror lacks that wrote this need file'],
      ['--sources <names>', 'of these sources alone, separated by commas'],
      ['--split <size>', 'cut it into parts of this size, such as 4 GB'],
      ['--expires <days>', 'another validity than bundle.expireDays; 0: for ever'],
      ['--force', 'replace a bundle of this name'],
      ['--unsigned', 'without a signature: anybody could have made it'], JSON_FLAG,
    ], load: async () => (await import('./bundle/export.ts')).exportCommand },
  { path: 'inspect', arguments: '<file...>', summary: 'what a bundle says of itself; nothing is imported',
    options: [['--verify', 'read every byte of it'], JSON_FLAG],
    load: async () => (await import('./bundle/inspect.ts')).inspectCommand },
  { path: 'import', arguments: '<file...>',
    summary: 'take in bundles, or the parts of one, in the order of their sequence',
    options: [
      ['--dry-run', 'say what would change, store nothing'],
      ['--allow-rollback', 'also import a bundle that is older than the stored data; the ledger records it'],
      ['--allow-unsigned', 'also import an unsigned bundle, which anyone could have made'],
      ['--again', 'write everything again from a full bundle, to repair damaged data'],
      ['--offline', 'make sure of it: any attempt to connect is an error'], JSON_FLAG,
    ], load: async () => (await import('./bundle/import.ts')).importCommand },
  { path: 'need', arguments: '<file>',
    summary: 'write down what is stored here, for "export --for" on the source mirror',
    options: [
      ['--brief', 'only which state: a kilobyte, for a mirror above that still knows it'],
      ['--sources <names>', 'of these sources alone, separated by commas; repeat it above'],
      ['--force', 'replace a file of this name'],
    ], load: async () => (await import('./bundle/need.ts')).needCommand },
  { path: 'identity', summary: 'who this mirror is in the bundles that it exports',
    options: [['--new', 'be another from now on: after a backup was restored, or a data folder copied']],
    load: async () => (await import('./bundle/identity.ts')).identityCommand },
  { path: 'digest', summary: 'one hash over all that is served: equal on both sides of a gap',
    options: [JSON_FLAG], load: async () => (await import('./bundle/need.ts')).digestCommand },

  { path: 'version', summary: 'the version; as JSON also the formats of database and bundles',
    options: [JSON_FLAG], load: async () => (await import('./version.ts')).versionCommand },
  { path: 'completion', arguments: '<shell>', summary: 'print the completion script of bash, zsh or fish',
    load: async () => (await import('./completion.ts')).completionOf(VERBS) },

  { path: 'whoami', summary: "the account behind upstream's credential",
    options: [JSON_FLAG], load: async () => (await import('./service/account.ts')).whoamiCommand },

  { path: 'users', summary: 'the users of the organization' },
  { path: 'users list', summary: 'list them',
    options: [JSON_FLAG], load: async () => (await import('./service/account.ts')).listUsersCommand },

  { path: 'api-keys', summary: "the service's API keys" },
  { path: 'api-keys create', arguments: '<name>', summary: 'create a key; it is shown once',
    options: [
      ['--role <role>', 'readonly, member or admin'], ['--type <type>', 'user or service'],
      ['--expires <time>', 'such as 2030-01-31T00:00:00Z'], OUT, JSON_FLAG,
    ], load: async () => (await import('./service/api-keys.ts')).createApiKeyCommand },
  { path: 'api-keys list', summary: 'list the keys',
    options: [JSON_FLAG], load: async () => (await import('./service/api-keys.ts')).listApiKeysCommand },
  { path: 'api-keys show', arguments: '<id>', summary: 'all about one key but the key itself',
    options: [JSON_FLAG], load: async () => (await import('./service/api-keys.ts')).showKeyCommand },
  { path: 'api-keys delete', arguments: '<id>', summary: 'delete a key; what uses it is refused from then on',
    options: [JSON_FLAG], load: async () => (await import('./service/api-keys.ts')).deleteKeyCommand },

  { path: 'subscriptions', summary: 'subscriptions to images and packages' },
  { path: 'subscriptions add', summary: 'subscribe',
    options: [
      ['--tag <id...>', 'ids of tags'], ['--image <id...>', 'ids of images'],
      ['--package <id...>', 'ids of packages'], JSON_FLAG,
    ], load: async () => (await import('./service/subscriptions.ts')).addSubscriptionsCommand },
  { path: 'subscriptions list', summary: 'list the subscriptions',
    options: [JSON_FLAG],
    load: async () => (await import('./service/subscriptions.ts')).listSubscriptionsCommand },
  { path: 'subscriptions show', arguments: '<id>', summary: 'all about one subscription',
    options: [JSON_FLAG],
    load: async () => (await import('./service/subscriptions.ts')).showSubscriptionCommand },
  { path: 'subscriptions remove', arguments: '<id...>', summary: 'remove subscriptions',
    options: [JSON_FLAG],
    load: async () => (await import('./service/subscriptions.ts')).removeSubscriptionsCommand },

  { path: 'webhooks', summary: 'events of the service: subscriptions, deliveries, tools' },
  { path: 'webhooks register', arguments: '[url]',
    summary: 'have events sent to an endpoint; this mirror keeps the signing secret',
    options: [
      URL_FLAG, ['--description <text>', 'a label'],
      ['--event <type...>', 'event types; default: a new image'], TEST_TAG, OUT, JSON_FLAG,
    ], after: REGISTER, load: async () => (await import('./webhooks/register.ts')).registerWebhookCommand },
  { path: 'webhooks rotate', arguments: '<id>',
    summary: 'replace a subscription and its secret without a gap',
    options: [URL_FLAG, TEST_TAG, ['--finish', 'drop the old subscription and its secret now'], JSON_FLAG],
    after: ROTATE, load: async () => (await import('./webhooks/rotate.ts')).rotateWebhookCommand },
  { path: 'webhooks list', summary: 'list the webhook subscriptions, and whether their secrets are stored here',
    options: [JSON_FLAG],
    load: async () => (await import('./webhooks/subscriptions.ts')).listWebhooksCommand },
  { path: 'webhooks test', arguments: '<id> [tag]', summary: 'have the service send a real event about a tag',
    options: [['--tag <id>', 'id of the tag, as /v1/tags/ has it; default: one that is mirrored'], JSON_FLAG],
    load: async () => (await import('./webhooks/subscriptions.ts')).testWebhookCommand },
  { path: 'webhooks delete', arguments: '<id>', summary: 'delete a webhook subscription, and its secret here',
    options: [JSON_FLAG],
    load: async () => (await import('./webhooks/subscriptions.ts')).deleteWebhookCommand },
  { path: 'webhooks inbox', summary: 'the newest deliveries and what became of them',
    options: [
      ['--state <state>', 'pending, done, ignored or dead'], ['--limit <n>', 'how many', '20'], JSON_FLAG,
    ], load: async () => (await import('./webhooks/inbox.ts')).inboxCommand },
  { path: 'webhooks show', arguments: '<id>', summary: 'all about one delivery but its body',
    options: [['--body', 'its body instead, byte for byte'], JSON_FLAG],
    load: async () => (await import('./webhooks/inbox.ts')).showDeliveryCommand },
  { path: 'webhooks replay', arguments: '[id...]', summary: 'refresh for deliveries once more',
    options: [['--failed', 'all dead letters'], JSON_FLAG],
    load: async () => (await import('./webhooks/inbox.ts')).replayCommand },
  { path: 'webhooks dismiss', arguments: '[id...]', summary: 'take dead letters off the list',
    options: [['--all', 'all dead letters'], JSON_FLAG],
    load: async () => (await import('./webhooks/inbox.ts')).dismissCommand },
  { path: 'webhooks dead-letters', summary: 'what was given up, and why',
    options: [['--limit <n>', 'how many', '20'], JSON_FLAG],
    load: async () => (await import('./webhooks/inbox.ts')).deadLettersCommand },
  { path: 'webhooks send', summary: 'sign a made-up event and send it to an endpoint',
    options: [
      ['--url <url>', 'where to'], SECRETS,
      ['--dialect <form>', 'standard, vendor, whole-base64 or decoded-hex', 'standard'],
      ['--type <type>', 'event type; default: a new image'],
      ['--tag <name>', 'what it announces: repository:tag, or repository:tag@sha256:…'],
      ['--id <id>', 'its id, to send the same one twice; default: a new one'],
      ['--clock <seconds>', 'as if the clock were off by so much, such as -301'], JSON_FLAG,
    ], load: async () => (await import('./webhooks/send.ts')).sendCommand },
  { path: 'webhooks doctor', arguments: '<file>',
    summary: 'say why a captured delivery is refused; - is standard input',
    options: [SECRETS, ['--at <time>', 'judge its time as of then; default: now'], JSON_FLAG],
    after: DOCTOR, load: async () => (await import('./webhooks/doctor.ts')).doctorCommand },
]
