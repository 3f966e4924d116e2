import { APPROVE, MIRROR_DOCTOR } from '../after-texts.ts'
import { JSON_FLAG, type Action, type Verb } from './verb.ts'

async function loadServe(): Promise<Action> {
  process.on('SIGHUP', () => undefined) // it never ends the daemon, not even while that is being loaded
  return (await import('../mirror/serve.ts')).serveCommand
}

async function loadHealth(): Promise<Action> {
  return (await import('../mirror/health.ts')).healthCommand
}

/** The commands that run, check and read the mirror as a whole, and its local keys. */
export const MIRROR_VERBS: readonly Verb[] = [
  {
    path: 'serve',
    summary: 'run the daemon: sync on schedule, serve the mirror',
    options: [['--offline', 'target mirror behind an air gap: make no connections, serve what was imported']],
    after: '\nWhere it listens and keeps its data are settings: server.listen and data.dir.',
    example: 'serve --config /etc/patchmirror.yaml',
    load: loadServe,
  },
  {
    path: 'sync',
    arguments: '[source...]',
    summary: 'sync now: feeds, osv, catalog, identity, or all of them',
    options: [
      ['--full', 'trust nothing that is known: fetch and compare everything'],
      ['--reconcile', 'find changes that lists do not announce (osv, feeds, catalog)'],
      ['--dry-run', 'say what would change, store nothing'],
      JSON_FLAG,
    ],
    example: 'sync osv --reconcile',
    load: async () => (await import('../mirror/sync.ts')).syncCommand,
  },
  {
    path: 'status',
    summary: 'how fresh everything is',
    options: [
      ['--max-age <age>', 'exit with 3 when a source is older than this, such as 90m, 26h or 7d'],
      ['--watch', 'show it again every two seconds until Ctrl-C'],
      JSON_FLAG,
    ],
    forms: [
      {
        options: [['--live', 'ask the running daemon whether it is well; exit status 0 or 1'], JSON_FLAG],
        load: loadHealth,
      },
      {
        options: [['--ready', 'and whether everything is fresh enough; exit status 0 or 1'], JSON_FLAG],
        load: loadHealth,
      },
    ],
    example: 'status --max-age 26h',
    load: async () => (await import('../mirror/status/status.ts')).statusCommand,
  },
  {
    path: 'runs',
    arguments: '[run]',
    summary: 'the run log, or all about one run',
    options: [
      ['--failed', 'only runs that failed, are partial or in quarantine'],
      ['--limit <n>', 'how many runs', '20'],
      JSON_FLAG,
    ],
    example: 'runs --failed --limit 5',
    load: async () => (await import('../mirror/runs.ts')).runsCommand,
  },
  {
    path: 'approve',
    arguments: '<run>',
    summary: 'let in what a run refused, or end its warning',
    options: [JSON_FLAG],
    after: APPROVE,
    example: 'approve 42',
    load: async () => (await import('../mirror/quarantine.ts')).approveCommand,
  },
  {
    path: 'reject',
    arguments: '<run>',
    summary: 'keep refusing what a quarantined run refused',
    options: [JSON_FLAG],
    example: 'reject 42',
    load: async () => (await import('../mirror/quarantine.ts')).rejectCommand,
  },
  {
    path: 'doctor',
    summary: 'check everything, and say what to do',
    forms: [
      {
        options: [
          ['--data', 'check the stored data against its digests instead'],
          ['--repair', 'with --data: fetch what is damaged again, or mirror a damaged database again'],
          JSON_FLAG,
        ],
        load: async () => (await import('../mirror/verify.ts')).verifyCommand,
      },
    ],
    after: MIRROR_DOCTOR,
    example: 'doctor --data --repair',
  },
]

/** The commands of the local keys. */
export const KEY_VERBS: readonly Verb[] = [
  { path: 'keys', summary: 'who may read the private paths' },
  {
    path: 'keys create',
    summary: 'make a key and show it, once',
    options: [
      ['--name <name>', 'whose it is, for the list and the log'],
      ['--out <file>', 'write it to a new file that only you may read, instead'],
      JSON_FLAG,
    ],
    example: 'keys create --name ci --out ci.key',
    load: async () => (await import('../mirror/keys.ts')).createKeyCommand,
  },
  {
    path: 'keys list',
    summary: 'every key ever made, without the keys themselves',
    options: [JSON_FLAG],
    example: 'keys list',
    load: async () => (await import('../mirror/keys.ts')).listKeysCommand,
  },
  {
    path: 'keys revoke',
    arguments: '<id>',
    summary: 'make a key worthless, at once',
    options: [JSON_FLAG],
    example: 'keys revoke 3',
    load: async () => (await import('../mirror/keys.ts')).revokeKeyCommand,
  },
]
