import { Command, CommanderError } from 'commander'
import { VERSION } from '../core/version.ts'
import { addBundles } from './bundle-verbs.ts'
import { AFTER, DESCRIPTION } from './manual.ts'
import { addLocalKeys, addRelay, addService } from './service-verbs.ts'
import { type Add, type Flag, adder, finish, global } from './verbs.ts'

export { CommanderError }

/** The `patchmirror` command line. Each action sets the process's exit code. */
export function createProgram(): Command {
  const program = new Command('patchmirror')
    .description(DESCRIPTION)
    .version(VERSION, '-V, --version', 'print the version')
    .option('-c, --config <file>', 'settings file; also PATCHMIRROR_CONFIG')
    .helpOption('-h, --help', 'print this page, or the one of a command')
    .helpCommand('help [command]', 'print the page of a command')
    .addHelpText('after', AFTER)
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(run "patchmirror --help" for the commands)')
    .exitOverride()
  const json = ['--json', 'print JSON'] as const
  const add = adder(program)

  // Each command's code is loaded when it is called, so that --help does not wait for the database or the network.
  add('serve', 'run the daemon: sync on schedule, serve the mirror')
    .option('--offline', 'below an air gap: connect to nobody, serve what was imported')
    .action(async (_, command: Command) => {
      process.on('SIGHUP', () => undefined) // it never ends the daemon, not even while that is being loaded
      const { serveCommand } = await import('./mirror/serve.ts')
      await finish(serveCommand(global(command)))
    })
  add('sync [source...]', 'sync now: feeds, osv, catalog, identity, or what is set up')
    .option('--full', 'trust nothing that is known: fetch and compare everything')
    .option('--reconcile', 'find changes that lists do not announce (osv, catalog)')
    .option('--dry-run', 'say what would change, store nothing')
    .option(...json)
    .action(async (names: string[], _, command: Command) => {
      const { syncCommand } = await import('./mirror/sync.ts')
      await finish(syncCommand(names, global(command)))
    })
  add('status', 'how fresh everything is')
    .option(...json)
    .action(async (_, command: Command) => {
      const { statusCommand } = await import('./mirror/status.ts')
      await finish(statusCommand(global(command)))
    })
  add('runs [run]', 'the run log, or all about one run')
    .option('--limit <n>', 'how many runs', '20')
    .option(...json)
    .action(async (run: string | undefined, _, command: Command) => {
      const { runsCommand } = await import('./mirror/runs.ts')
      await finish(runsCommand(run, global(command)))
    })
  addUpkeep(add, json)
  addScanners(add, json)
  addLocalKeys(add, json)
  addRelay(add, json)
  addBundles(add, json)
  addService(add, json)
  return program
}

function addScanners(add: Add, json: Flag): void {
  add(
    'export-db <scanner> <dir>',
    'write the offline database of a scanner (osv-scanner) to a folder',
  )
    .option('--ecosystem <name...>', 'only these; else all, and what is gone is removed')
    .option(...json)
    .action(async (scanner: string, dir: string, _, command: Command) => {
      const { exportDbCommand } = await import('./mirror/export-db.ts')
      await finish(exportDbCommand(scanner, dir, global(command)))
    })
}

function addUpkeep(add: Add, json: Flag): void {
  add('approve <run>', 'let in what a quarantined run refused').action(
    async (run: string, _, command: Command) => {
      const { approveCommand } = await import('./mirror/quarantine.ts')
      await finish(approveCommand(run, global(command)))
    },
  )
  add('reject <run>', 'keep refusing what a quarantined run refused').action(
    async (run: string, _, command: Command) => {
      const { rejectCommand } = await import('./mirror/quarantine.ts')
      await finish(rejectCommand(run, global(command)))
    },
  )
  add('verify', 'check every stored byte against its digest')
    .option('--repair', 'fetch what is damaged again')
    .option(...json)
    .action(async (_, command: Command) => {
      const { verifyCommand } = await import('./mirror/verify.ts')
      await finish(verifyCommand(global(command)))
    })
  add('config', 'the settings in force and where each came from')
    .option(...json)
    .action(async (_, command: Command) => {
      const { configCommand } = await import('./mirror/config.ts')
      await finish(configCommand(global(command)))
    })
  add('health', 'ask the running daemon whether it is well')
    .option('--ready', 'whether everything is fresh enough, too')
    .action(async (_, command: Command) => {
      const { healthCommand } = await import('./mirror/health.ts')
      await finish(healthCommand(global(command)))
    })
}
