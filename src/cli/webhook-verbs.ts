import type { Command } from 'commander'
import { type Add, type Flag, finish, global } from './verbs.ts'

/** Adds what concerns the service's webhook subscriptions and what they bring. */
export function addWebhooks(add: Add, json: Flag, out: Flag): void {
  addSubscription(add, json, out)
  addInbox(add, json)
  addTools(add, json)
}

const URL = ['--url <url>', 'where events are sent: https://…/-/webhooks'] as const
const TEST_TAG = [
  '--test-tag <id>',
  'test it with the tag of this id, as /v1/tags/ has it; default: one that is mirrored',
] as const

function addSubscription(add: Add, json: Flag, out: Flag): void {
  const load = () => import('./webhooks/subscriptions.ts')
  add('register [url]', 'have events sent to an endpoint; this mirror keeps the signing secret')
    .option(...URL)
    .option('--description <text>', 'a label')
    .option('--event <type...>', 'event types; default: a new image')
    .option(...TEST_TAG)
    .option(...out)
    .option(...json)
    .addHelpText('after', REGISTER)
    .action(async (url: string | undefined, _, command: Command) => {
      const { registerWebhookCommand } = await import('./webhooks/register.ts')
      await finish(registerWebhookCommand(url, global(command)))
    })
  add('rotate <id>', 'replace a subscription and its secret without a gap')
    .option(...URL)
    .option(...TEST_TAG)
    .option('--finish', 'drop the old subscription and its secret now')
    .option(...json)
    .addHelpText('after', ROTATE)
    .action(async (id: string, _, command: Command) => {
      const { rotateWebhookCommand } = await import('./webhooks/rotate.ts')
      await finish(rotateWebhookCommand(id, global(command)))
    })
  add('list', 'list the webhook subscriptions, and whether their secrets are held here')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).listWebhooksCommand(global(command)))
    })
  add('test <id> [tag]', 'have the service send a real event about a tag')
    .option('--tag <id>', 'id of the tag, as /v1/tags/ has it; default: one that is mirrored')
    .option(...json)
    .action(async (id: string, tag: string | undefined, _, command: Command) => {
      await finish((await load()).testWebhookCommand(id, tag, global(command)))
    })
  add('delete <id>', 'delete a webhook subscription, and its secret here')
    .option(...json)
    .action(async (id: string, _, command: Command) => {
      await finish((await load()).deleteWebhookCommand(id, global(command)))
    })
}

function addInbox(add: Add, json: Flag): void {
  const load = () => import('./webhooks/inbox.ts')
  add('inbox', 'the newest deliveries and what became of them')
    .option('--state <state>', 'pending, done, ignored or dead')
    .option('--limit <n>', 'how many', '20')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).inboxCommand(global(command)))
    })
  add('show <id>', 'all about one delivery but its body')
    .option('--body', 'its body instead, byte for byte')
    .option(...json)
    .action(async (id: string, _, command: Command) => {
      await finish((await load()).showDeliveryCommand(id, global(command)))
    })
  add('replay [id...]', 'refresh for deliveries once more')
    .option('--failed', 'all dead letters')
    .option(...json)
    .action(async (ids: string[], _, command: Command) => {
      await finish((await load()).replayCommand(ids, global(command)))
    })
  add('dismiss [id...]', 'take dead letters off the list')
    .option('--all', 'all dead letters')
    .option(...json)
    .action(async (ids: string[], _, command: Command) => {
      await finish((await load()).dismissCommand(ids, global(command)))
    })
  add('dead-letters', 'what was given up, and why')
    .option('--limit <n>', 'how many', '20')
    .option(...json)
    .action(async (_, command: Command) => {
      await finish((await load()).deadLettersCommand(global(command)))
    })
}

function addTools(add: Add, json: Flag): void {
  const secrets = ['--secret-file <file>', 'secrets, one a line; default: those held here'] as const
  add('send', 'sign a made-up event and send it to an endpoint')
    .option('--url <url>', 'where to')
    .option(...secrets)
    .option('--dialect <form>', 'standard, vendor, whole-base64 or decoded-hex', 'standard')
    .option('--type <type>', 'event type; default: a new image')
    .option('--tag <name>', 'what it announces: repository:tag, or repository:tag@sha256:…')
    .option('--id <id>', 'its id, to send the same one twice; default: a new one')
    .option('--clock <seconds>', 'as if the clock were off by so much, such as -301')
    .option(...json)
    .action(async (_, command: Command) => {
      const { sendCommand } = await import('./webhooks/send.ts')
      await finish(sendCommand(global(command)))
    })
  add('doctor <file>', 'say why a captured delivery is refused; - is standard input')
    .option(...secrets)
    .option('--at <time>', 'judge its time as of then; default: now')
    .option(...json)
    .addHelpText('after', DOCTOR)
    .action(async (file: string, _, command: Command) => {
      const { doctorCommand } = await import('./webhooks/doctor.ts')
      await finish(doctorCommand(file, global(command)))
    })
}

const REGISTER = `
The secret goes into webhooks.secretFile, which a running mirror reads at once; that the file can be
written is tried before the service is asked. With --out it goes into a new file of its own, for a
receiver elsewhere. Exit status 1: the secret could not be kept (it is shown then), or the test that
--test-tag asked for failed.
`
const ROTATE = `
Registers a new subscription like the old one; both secrets are accepted. When the test event comes
through, the old subscription is deleted, and its secret is accepted for four more days, for what the
service still tries to deliver. Otherwise (exit status 1) both stay until "rotate ID --finish".
`
const DOCTOR = `
FILE is the text of the HTTP request (headers, an empty line, the body), or JSON with "headers" and
"body" or "bodyBase64". Every held secret is tried in every form that is known to happen; no secret,
signature or body is printed. Exit status 0: this mirror takes it; 1: it does not.
`
