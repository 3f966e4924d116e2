#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { AFTER, DESCRIPTION } from './commands/manual.ts'
import type { GlobalOptions } from './commands/setup.ts'
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
  add('serve', 'run the daemon: sync on schedule, serve the mirror').action(
    async (_, command: Command) => {
      const { serveCommand } = await import('./commands/serve.ts')
      await finish(serveCommand(global(command)))
    },
  )
  add('sync [source...]', 'sync now: feeds, osv, or all')
    .option('--full', 'trust nothing that is known: fetch and compare everything')
    .option('--reconcile', 'find changes that the index does not announce (osv)')
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
  addUpkeep(add, json)
  addLocalKeys(add, json)
  addService(add, json)
  return program
}

type Flag = readonly [string, string]
type Add = (name: string, description: string) => Command

function adder(parent: Command): Add {
  return (name, description) => parent.command(name).description(description).exitOverride()
}

function addUpkeep(add: Add, json: Flag): void {
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

/** What asks the service itself, for the people who run it: its keys, subscriptions, webhooks and users. */
function addService(add: Add, json: Flag): void {
  const group = (name: string, description: string): Add => adder(add(name, description))
  const out = ['--out <file>', 'write the secret into this new file, not to the terminal'] as const
  add('whoami', "the account behind upstream's credential")
    .option(...json)
    .action(async (_, command: Command) => {
      const { whoamiCommand } = await import('./commands/people.ts')
      await finish(whoamiCommand(global(command)))
    })
  group('users', 'the users of the organization')('list', 'list them')
    .option(...json)
    .action(async (_, command: Command) => {
      const { listUsersCommand } = await import('./commands/people.ts')
      await finish(listUsersCommand(global(command)))
    })
  addKeys(group('api-keys', "the service's API keys"), json, out)
  addSubscriptions(group('subscriptions', 'subscriptions to images and packages'), json)
  addWebhooks(group('webhooks', 'webhook subscriptions of the service'), json, out)
}

function addKeys(add: Add, json: Flag, out: Flag): void {
  const load = () => import('./commands/api-keys.ts')
  add('create <name>', 'create a key; it is shown once')
    .option('--role <role>', 'readonly, member or admin')
    .option('--type <type>', 'user or service')
    .option('--expires <time>', 'such as 2030-01-31T00:00:00Z')
    .option(...out)
    .option(...json)
    .action(async (name: string, _, command: Command) => {
      await finish((await load()).createKeyCommand(name, global(command)))
    })
  add('list', 'list the keys')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).listKeysCommand(global(command)))
    })
  add('show <id>', 'all about one key but the key itself')
    .option(...json)
    .action(async (id: string, _, command: Command) => {
      await finish((await load()).showKeyCommand(id, global(command)))
    })
  add('delete <id>', 'delete a key; what uses it is refused from then on')
    .option(...json)
    .action(async (id: string, _, command: Command) => {
      await finish((await load()).deleteKeyCommand(id, global(command)))
    })
}

function addSubscriptions(add: Add, json: Flag): void {
  const load = () => import('./commands/subscriptions.ts')
  add('add', 'subscribe')
    .option('--tag <id...>', 'ids of tags')
    .option('--image <id...>', 'ids of images')
    .option('--package <id...>', 'ids of packages')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).addSubscriptionsCommand(global(command)))
    })
  add('list', 'list the subscriptions')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).listSubscriptionsCommand(global(command)))
    })
  add('show <id>', 'all about one subscription')
    .option(...json)
    .action(async (id: string, _, command: Command) => {
      await finish((await load()).showSubscriptionCommand(id, global(command)))
    })
  add('remove <id...>', 'remove subscriptions')
    .option(...json)
    .action(async (ids: string[], _, command: Command) => {
      await finish((await load()).removeSubscriptionsCommand(ids, global(command)))
    })
}

function addWebhooks(add: Add, json: Flag, out: Flag): void {
  const load = () => import('./commands/webhooks.ts')
  add('register <url>', 'have events sent to an endpoint; the signing secret is shown once')
    .option('--description <text>', 'a label')
    .option('--event <type...>', 'event types; default: a new image')
    .option(...out)
    .option(...json)
    .action(async (url: string, _, command: Command) => {
      await finish((await load()).registerWebhookCommand(url, global(command)))
    })
  add('list', 'list the webhook subscriptions')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).listWebhooksCommand(global(command)))
    })
  add('test <id> <tag>', 'have the service send a real event about a tag')
    .option(...json)
    .action(async (id: string, tag: string, _, command: Command) => {
      await finish((await load()).testWebhookCommand(id, tag, global(command)))
    })
  add('delete <id>', 'delete a webhook subscription')
    .option(...json)
    .action(async (id: string, _, command: Command) => {
      await finish((await load()).deleteWebhookCommand(id, global(command)))
    })
}

function addLocalKeys(add: Add, json: Flag): void {
  const addKey = adder(add('keys', 'local keys: who may read the private paths of this mirror'))
  const load = () => import('./commands/keys.ts')
  addKey('create', 'make a key and show it, once')
    .option('--name <name>', 'whose it is, for the list and the log')
    .option('--out <file>', 'write it into this new file, not to the terminal')
    .action(async (_, command: Command) => {
      await finish((await load()).createKeyCommand(global(command)))
    })
  addKey('list', 'every key ever made, without the keys themselves')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).listKeysCommand(global(command)))
    })
  addKey('revoke <id>', 'make a key worthless, at once').action(
    async (id: string, _, command: Command) => {
      await finish((await load()).revokeKeyCommand(id, global(command)))
    },
  )
}

/** The command's own options and the global ones; each command names the ones it reads. */
function global(command: Command): GlobalOptions & Record<string, never> {
  return command.optsWithGlobals()
}

async function finish(work: number | Promise<number>): Promise<void> {
  process.exitCode = await work
}

try {
  await createProgram().parseAsync()
} catch (error) {
  // Commander has printed its own message already; 0 is --help and --version.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else {
    process.stderr.write(`patchmirror: ${messageOf(error)}\n`)
    if (!(error instanceof MirrorError))
      process.stderr.write(`${error instanceof Error ? (error.stack ?? '') : ''}\n`)
    process.exitCode = exitCode(error)
  }
}
