import { DELIVERY, REGISTER, ROTATE } from '../after-texts.ts'
import { JSON_FLAG, OUT, type Flag, type Verb } from './verb.ts'

const SECRETS: Flag = ['--secret-file <file>', 'secrets, one a line; default: those stored here']
const URL_FLAG: Flag = ['--url <url>', 'where events are sent: https://…/-/webhooks']
const TEST_TAG: Flag = [
  '--test-tag <id>',
  'test it with the tag of this id, as /v1/tags/ has it; default: one that is mirrored',
]

const TAG: Flag = [
  '--tag <tag>',
  'the id of a tag, as /v1/tags/ has it; default: one that is mirrored. With --url: repository:tag, or repository:tag@sha256:…',
]
const ALL_DEAD: Flag = ['--all', 'all dead letters']

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
    path: 'webhooks list',
    summary: 'list the webhook subscriptions, and whether their secrets are stored here',
    options: [JSON_FLAG],
    example: 'webhooks list',
    load: async () => (await import('../webhooks/subscriptions.ts')).listWebhooksCommand,
  },
  {
    path: 'webhooks test',
    arguments: '[id] [tag]',
    summary: 'have the service send a real event, or send a made-up one',
    options: [TAG, JSON_FLAG],
    forms: [
      {
        options: [
          ['--url <url>', 'sign a made-up event and send it to this endpoint; the service is not asked'],
          SECRETS,
          ['--dialect <form>', 'standard, vendor, whole-base64 or decoded-hex', 'standard'],
          ['--type <type>', 'event type; default: a new image'],
          TAG,
          ['--id <id>', 'id of the event, to send the same one twice; default: a new one'],
          ['--clock <seconds>', 'as if the clock were off by so much, such as -301'],
          JSON_FLAG,
        ],
        load: async () => (await import('../webhooks/send.ts')).sendCommand,
      },
    ],
    example: 'webhooks test SUBSCRIPTION-ID --tag TAG-ID',
    load: async () => (await import('../webhooks/subscriptions.ts')).testWebhookCommand,
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
    path: 'webhooks delete',
    arguments: '<id>',
    summary: 'delete a webhook subscription, and its secret here',
    options: [JSON_FLAG],
    example: 'webhooks delete SUBSCRIPTION-ID',
    load: async () => (await import('../webhooks/subscriptions.ts')).deleteWebhookCommand,
  },
  {
    path: 'webhooks inbox',
    arguments: '[id]',
    summary: 'the newest deliveries and what became of them, or all about one',
    options: [
      ['--state <state>', 'pending, done, ignored or dead: given up, with the reason'],
      ['--limit <n>', 'how many', '20'],
      ['--body', 'of the one delivery: its body instead, byte for byte'],
      JSON_FLAG,
    ],
    example: 'webhooks inbox --state dead',
    load: async () => (await import('../webhooks/inbox.ts')).inboxCommand,
  },
  {
    path: 'webhooks resolve',
    arguments: '[id...]',
    summary: 'refresh for deliveries once more, or take dead letters off the list',
    forms: [
      {
        options: [['--replay', 'refresh for them once more'], ALL_DEAD, JSON_FLAG],
        takesArguments: true,
        load: async () => (await import('../webhooks/inbox.ts')).replayCommand,
      },
      {
        options: [['--dismiss', 'take them off the list'], ALL_DEAD, JSON_FLAG],
        takesArguments: true,
        load: async () => (await import('../webhooks/inbox.ts')).dismissCommand,
      },
    ],
    example: 'webhooks resolve --replay --all',
  },
  {
    path: 'webhooks check',
    arguments: '<file>',
    summary: 'say why a captured delivery is refused; - is standard input',
    options: [SECRETS, ['--at <time>', 'judge its time as of then; default: now'], JSON_FLAG],
    after: DELIVERY,
    example: 'webhooks check delivery.txt --at 2026-05-01T12:00:00Z',
    load: async () => (await import('../webhooks/doctor.ts')).doctorCommand,
  },
]
