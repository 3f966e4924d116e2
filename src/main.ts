#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { addBundles } from './commands/bundle-verbs.ts'
import { AFTER, DESCRIPTION } from './commands/manual.ts'
import { addLocalKeys, addRelay, addService } from './commands/service-verbs.ts'
import { type Add, type Flag, adder, finish, global, usageOf } from './commands/verbs.ts'
import { MirrorError, exitCode, messageOf } from './errors.ts'
import { VERSION } from './version.ts'

/** The `patchmirror` command line. Each action sets the process's exit code. */
function createProgram(): Command {
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
      const { serveCommand } = await import('./commands/serve.ts')
      await finish(serveCommand(global(command)))
    })
  add('sync [source...]', 'sync now: feeds, osv, catalog, identity, or what is set up')
    .option('--full', 'trust nothing that is known: fetch and compare everything')
    .option('--reconcile', 'find changes that lists do not announce (osv, catalog)')
    .option('--dry-run', 'say what would change, store nothing')
    .option(...json)
    .action(async (names: string[], _, command: Command) => {
      const { syncCommand } = await import('./commands/sync.ts')
      await finish(syncCommand(names, global(command)))
    })
  add('status', 'how fresh everything is')
    .option(...json)
    .action(async (_, command: Command) => {
      const { statusCommand } = await import('./commands/status.ts')
      await finish(statusCommand(global(command)))
    })
  add('runs [run]', 'the run log, or all about one run')
    .option('--limit <n>', 'how many runs', '20')
    .option(...json)
    .action(async (run: string | undefined, _, command: Command) => {
      const { runsCommand } = await import('./commands/runs.ts')
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
      const { exportDbCommand } = await import('./commands/export-db.ts')
      await finish(exportDbCommand(scanner, dir, global(command)))
    })
}

function addUpkeep(add: Add, json: Flag): void {
  add('approve <run>', 'let in what a quarantined run refused').action(
    async (run: string, _, command: Command) => {
      const { approveCommand } = await import('./commands/decide.ts')
      await finish(approveCommand(run, global(command)))
    },
  )
  add('reject <run>', 'keep refusing what a quarantined run refused').action(
    async (run: string, _, command: Command) => {
      const { rejectCommand } = await import('./commands/decide.ts')
      await finish(rejectCommand(run, global(command)))
    },
  )
  add('verify', 'check every stored byte against its digest')
    .option('--repair', 'fetch what is damaged again')
    .option(...json)
    .action(async (_, command: Command) => {
      const { verifyCommand } = await import('./commands/verify.ts')
      await finish(verifyCommand(global(command)))
    })
  add('config', 'the settings in force and where each came from')
    .option(...json)
    .action(async (_, command: Command) => {
      const { configCommand } = await import('./commands/config.ts')
      await finish(configCommand(global(command)))
    })
  add('health', 'ask the running daemon whether it is well')
    .option('--ready', 'whether everything is fresh enough, too')
    .action(async (_, command: Command) => {
      const { healthCommand } = await import('./commands/health.ts')
      await finish(healthCommand(global(command)))
    })
}

// Whatever a command creates is for its own user alone: databases, archives, bundles, downloads, locks.
process.umask(0o077)

// Whoever reads our output may have seen enough (`| head`): that ends the command, and is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  const text = `Node 22.19 or later is needed, and this is ${process.versions.node}. In a checkout, "npm run patchmirror" brings its own.`
  process.stderr.write(`patchmirror: ${text}\n`)
  process.exit(2)
}

let running = null as Command | null // set by the hook, which the compiler does not follow
try {
  const program = createProgram()
  program.hook('preAction', (_, action) => void (running = action))
  await program.parseAsync()
} catch (error) {
  // Commander has printed its own message already; 0 is --help and --version.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else {
    // Upstream has a say in messages; what would move a terminal's cursor is left out.
    process.stderr.write(`patchmirror: ${messageOf(error).replace(/[^\P{C}\n]+/gu, ' ')}\n`)
    if (error instanceof MirrorError && error.code === 'usage' && running !== null)
      process.stderr.write(`${usageOf(running)}\n`)
    if (!(error instanceof MirrorError))
      process.stderr.write(`${error instanceof Error ? (error.stack ?? '') : ''}\n`)
    process.exitCode = exitCode(error)
  }
}
