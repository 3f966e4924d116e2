import type { Command } from 'commander'
import { type Add, type Flag, adder, finish, global } from './verbs.ts'
import { addWebhooks } from './webhook-verbs.ts'

/** Who may read from this mirror. */
export function addLocalKeys(add: Add, json: Flag): void {
  const keys = add('keys', 'local keys: who may read the private paths of this mirror')
  const addKey = (name: string, description: string): Command =>
    keys.command(name).description(description).showHelpAfterError().exitOverride()
  addKey('create', 'make a key and show it, once')
    .option('--name <name>', 'whose it is, for the list and the log')
    .option('--out <file>', 'write it to a new file that only you may read, instead')
    .action(async (_, command: Command) => {
      const { createKeyCommand } = await import('./mirror/keys.ts')
      await finish(createKeyCommand(global(command)))
    })
  addKey('list', 'every key ever made, without the keys themselves')
    .option(...json)
    .action(async (_, command: Command) => {
      const { listKeysCommand } = await import('./mirror/keys.ts')
      await finish(listKeysCommand(global(command)))
    })
  addKey('revoke <id>', 'make a key worthless, at once').action(
    async (id: string, _, command: Command) => {
      const { revokeKeyCommand } = await import('./mirror/keys.ts')
      await finish(revokeKeyCommand(id, global(command)))
    },
  )
}

/** Whom this mirror tells of what it received and published. */
export function addRelay(add: Add, json: Flag): void {
  const load = () => import('./mirror/relay.ts')
  const relay = adder(add('relay', 'whom this mirror passes events on to'))
  relay('status', 'how each target stands')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).relayStatusCommand(global(command)))
    })
  relay('enable <id>', 'send to a disabled target again; try a failing one at once').action(
    async (id: string, _, command: Command) => {
      await finish((await load()).enableTargetCommand(id, global(command)))
    },
  )
  relay('secret', 'what a receiver needs to verify what this mirror passes on').action(
    async (_, command: Command) => {
      await finish((await load()).relaySecretCommand(global(command)))
    },
  )
}

/** What asks the service itself, for the people who run it: its keys, subscriptions, webhooks and users. */
export function addService(add: Add, json: Flag): void {
  const group = (name: string, description: string): Add => adder(add(name, description))
  const out = ['--out <file>', 'write the secret into this new file, not to the terminal'] as const
  add('whoami', "the account behind upstream's credential")
    .option(...json)
    .action(async (_, command: Command) => {
      const { whoamiCommand } = await import('./service/account.ts')
      await finish(whoamiCommand(global(command)))
    })
  group('users', 'the users of the organization')('list', 'list them')
    .option(...json)
    .action(async (_, command: Command) => {
      const { listUsersCommand } = await import('./service/account.ts')
      await finish(listUsersCommand(global(command)))
    })
  addKeys(group('api-keys', "the service's API keys"), json, out)
  addSubscriptions(group('subscriptions', 'subscriptions to images and packages'), json)
  addWebhooks(
    group('webhooks', 'events of the service: subscriptions, deliveries, tools'),
    json,
    out,
  )
}

function addKeys(add: Add, json: Flag, out: Flag): void {
  const load = () => import('./service/api-keys.ts')
  add('create <name>', 'create a key; it is shown once')
    .option('--role <role>', 'readonly, member or admin')
    .option('--type <type>', 'user or service')
    .option('--expires <time>', 'such as 2030-01-31T00:00:00Z')
    .option(...out)
    .option(...json)
    .action(async (name: string, _, command: Command) => {
      await finish((await load()).createApiKeyCommand(name, global(command)))
    })
  add('list', 'list the keys')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).listApiKeysCommand(global(command)))
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
  const load = () => import('./service/subscriptions.ts')
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
