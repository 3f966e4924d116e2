import { DOCTOR, REGISTER, ROTATE } from '../after-texts.ts'
import { JSON_FLAG, OUT, type Flag, type Verb } from './verb.ts'

const SECRETS: Flag = ['--secret-file <file>', 'secrets, one a line; default: those stored here']
const URL_FLAG: Flag = ['--url <url>', 'where events are sent: https://…/-/webhooks']
const TEST_TAG: Flag = [
  '--test-tag <id>',
  'test it with the tag of this id, as /v1/tags/ has it; default: one that is mirrored',
]

/** Commands about events of the service. */
export const WEBHOOK_VERBS: readonly Verb[] = [
  { path: 'webhooks', summary: 'events' },
  {
    path: 'webhooks register',
    arguments: '[url]',
    summary: 'have events sent to an endpoint; this mirror keeps the signing secret',
    options: [
      URL_FLAG,
      ['--description <text>', 'a label'],
      ['--event <type...>', 'event types; default: a new image'],
      TEST_TAG,
      OUT,
      JSON_FLAG,
    ],
    after: REGISTER,
    example: 'webhooks register --url https://hooks.example.com/-/webhooks',
    load: async () => (await import('../webhooks/register.ts')).registerWebhookCommand,
  },
  {
    path: 'webhooks rotate',
    arguments: '<id>',
    summary: 'replace a subscription and its secret without a gap',
    options: [URL_FLAG, TEST_TAG, ['--finish', 'drop the old subscription and its secret now'], JSON_FLAG],
    after: ROTATE,
    example: 'webhooks rotate SUBSCRIPTION-ID',
    load: async () => (await import('../webhooks/rotate.ts')).rotateWebhookCommand,
  },
  {
    path: 'webhooks list',
    summary: 'list the webhook subscriptions, and whether their secrets are stored here',
    options: [JSON_FLAG],
    example: 'webhooks list',
    load: async () => (await import('../webhooks/subscriptions.ts')).listWebhooksCommand,
  },
  {
    path: 'webhooks test',
    arguments: '<id> [tag]',
    summary: 'have the service send a real event about a tag',
    options: [['--tag <id>', 'id of the tag, as /v1/tags/ has it; default: one that is mirrored'], JSON_FLAG],
    example: 'webhooks test SUBSCRIPTION-ID --tag TAG-ID',
    load: async () => (await import('../webhooks/subscriptions.ts')).testWebhookCommand,
  },
  {
    path: 'webhooks delete',
    arguments: '<id>',
    summary: 'delete a webhook subscription, and its secret here',
    options: [JSON_FLAG],
    example: 'webhooks delete SUBSCRIPTION-ID',
    load: async () => (await import('../webhooks/subscriptions.ts')).deleteWebhookCommand,
  },
  {
    path: 'webhooks inbox',
    summary: 'the newest deliveries and what became of them',
    options: [['--state <state>', 'pending, done, ignored or dead'], ['--limit <n>', 'how many', '20'], JSON_FLAG],
    example: 'webhooks inbox --state pending',
    load: async () => (await import('../webhooks/inbox.ts')).inboxCommand,
  },
  {
    path: 'webhooks show',
    arguments: '<id>',
    summary: 'all about one delivery but its body',
    options: [['--body', 'its body instead, byte for byte'], JSON_FLAG],
    example: 'webhooks show DELIVERY-ID --body',
    load: async () => (await import('../webhooks/inbox.ts')).showDeliveryCommand,
  },
  {
    path: 'webhooks replay',
    arguments: '[id...]',
    summary: 'refresh for deliveries once more',
    options: [['--failed', 'all dead letters'], JSON_FLAG],
    example: 'webhooks replay --failed',
    load: async () => (await import('../webhooks/inbox.ts')).replayCommand,
  },
  {
    path: 'webhooks dismiss',
    arguments: '[id...]',
    summary: 'take dead letters off the list',
    options: [['--all', 'all dead letters'], JSON_FLAG],
    example: 'webhooks dismiss --all',
    load: async () => (await import('../webhooks/inbox.ts')).dismissCommand,
  },
  {
    path: 'webhooks dead-letters',
    summary: 'what was given up, and why',
    options: [['--limit <n>', 'how many', '20'], JSON_FLAG],
    example: 'webhooks dead-letters --limit 5',
    load: async () => (await import('../webhooks/inbox.ts')).deadLettersCommand,
  },
  {
    path: 'webhooks send',
    summary: 'sign a made-up event and send it to an endpoint',
    options: [
      ['--url <url>', 'where to'],
      SECRETS,
      ['--dialect <form>', 'standard, vendor, whole-base64 or decoded-hex', 'standard'],
      ['--type <type>', 'event type; default: a new image'],
      ['--tag <name>', 'what it announces: repository:tag, or repository:tag@sha256:…'],
      ['--id <id>', 'its id, to send the same one twice; default: a new one'],
      ['--clock <seconds>', 'as if the clock were off by so much, such as -301'],
      JSON_FLAG,
    ],
    example: 'webhooks send --url http://127.0.0.1:8080/-/webhooks --tag library/python:3.12',
    load: async () => (await import('../webhooks/send.ts')).sendCommand,
  },
  {
    path: 'webhooks doctor',
    arguments: '<file>',
    summary: 'say why a captured delivery is refused; - is standard input',
    options: [SECRETS, ['--at <time>', 'judge its time as of then; default: now'], JSON_FLAG],
    after: DOCTOR,
    example: 'webhooks doctor delivery.txt --at 2026-05-01T12:00:00Z',
    load: async () => (await import('../webhooks/doctor.ts')).doctorCommand,
  },
]
