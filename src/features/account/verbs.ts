import { JSON_FLAG, OUT, type Flag, type VerbPart } from '../../cli/verbs/verb.ts'
import { SECRETS } from '../../cli/verbs/webhooks.ts'

const URL_FLAG: Flag = ['--url <url>', 'where events are sent: https://…/-/webhooks']
const TEST_TAG: Flag = [
  '--test-tag <id>',
  'test it with the tag of this id, as /v1/tags/ has it; default: one that is mirrored',
]

const TAG: Flag = [
  '--tag <tag>',
  'the id of a tag, as /v1/tags/ has it; default: one that is mirrored. With --url: repository:tag, or repository:tag@sha256:…',
]

/** Text of a help page, below the list of options. */
const REGISTER = `
The secret goes into webhook-secrets.json in data.dir, which a running mirror
reads at once; that the file can be written is tried before the service is asked. With
--out it goes into a new file of its own, for a receiver elsewhere. Exit
status 1: the secret could not be kept (it is shown then), or the test that
--test-tag asked for failed.
`
/** Text of a help page, below the list of options. */
const ROTATE = `
Registers a new subscription like the old one; both secrets are accepted. When
the test event comes through, the old subscription is deleted, and its secret
is accepted for four more days, for what the service still tries to deliver.
Otherwise (exit status 1) both stay until "rotate ID --finish".
`

/** Commands that ask the service with upstream's credential. */
export const ACCOUNT_VERBS: readonly VerbPart[] = [
  {
    path: 'whoami',
    summary: "the account behind upstream's credential",
    options: [JSON_FLAG],
    example: 'whoami',
    load: async () => (await import('./identity.ts')).whoamiCommand,
  },
  {
    path: 'users',
    summary: 'the users of the organization',
    options: [JSON_FLAG],
    example: 'users',
    load: async () => (await import('./identity.ts')).listUsersCommand,
  },
  { path: 'api-keys', summary: "the service's API keys" },
  {
    path: 'api-keys create',
    arguments: '<name>',
    summary: 'create a key; it is shown once',
    options: [
      ['--role <role>', 'readonly, member or admin'],
      ['--type <type>', 'user or service'],
      ['--expires <time>', 'such as 2030-01-31T00:00:00Z'],
      OUT,
      JSON_FLAG,
    ],
    example: 'api-keys create mirror --role readonly --out mirror.key',
    load: async () => (await import('./api-keys.ts')).createApiKeyCommand,
  },
  {
    path: 'api-keys list',
    arguments: '[id]',
    summary: 'the keys, or all about one but the key itself',
    options: [JSON_FLAG],
    example: 'api-keys list',
    load: async () => (await import('./api-keys.ts')).listApiKeysCommand,
  },
  {
    path: 'api-keys delete',
    arguments: '<id>',
    summary: 'delete a key; what uses it is refused from then on',
    options: [JSON_FLAG],
    example: 'api-keys delete KEY-ID',
    load: async () => (await import('./api-keys.ts')).deleteKeyCommand,
  },
  { path: 'subscriptions', summary: 'subscriptions to images and packages' },
  {
    path: 'subscriptions add',
    summary: 'subscribe',
    options: [
      ['--tag <id...>', 'ids of tags'],
      ['--image <id...>', 'ids of images'],
      ['--package <id...>', 'ids of packages'],
      JSON_FLAG,
    ],
    example: 'subscriptions add --image IMAGE-ID',
    load: async () => (await import('./subscriptions.ts')).addSubscriptionsCommand,
  },
  {
    path: 'subscriptions list',
    arguments: '[id]',
    summary: 'the subscriptions, or all about one',
    options: [JSON_FLAG],
    example: 'subscriptions list',
    load: async () => (await import('./subscriptions.ts')).listSubscriptionsCommand,
  },
  {
    path: 'subscriptions remove',
    arguments: '<id...>',
    summary: 'remove subscriptions',
    options: [JSON_FLAG],
    example: 'subscriptions remove SUBSCRIPTION-ID',
    load: async () => (await import('./subscriptions.ts')).removeSubscriptionsCommand,
  },
  { path: 'webhooks' },
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
    load: async () => (await import('./webhooks/register.ts')).registerWebhookCommand,
  },
  {
    path: 'webhooks list',
    summary: 'list the webhook subscriptions, and whether their secrets are stored here',
    options: [JSON_FLAG],
    example: 'webhooks list',
    load: async () => (await import('./webhooks/subscriptions.ts')).listWebhooksCommand,
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
        load: async () => (await import('./webhooks/send.ts')).sendCommand,
      },
    ],
    example: 'webhooks test SUBSCRIPTION-ID --tag TAG-ID',
    load: async () => (await import('./webhooks/subscriptions.ts')).testWebhookCommand,
  },
  {
    path: 'webhooks rotate',
    arguments: '<id>',
    summary: 'replace a subscription and its secret without a gap',
    options: [URL_FLAG, TEST_TAG, ['--finish', 'drop the old subscription and its secret now'], JSON_FLAG],
    after: ROTATE,
    example: 'webhooks rotate SUBSCRIPTION-ID',
    load: async () => (await import('./webhooks/rotate.ts')).rotateWebhookCommand,
  },
  {
    path: 'webhooks delete',
    arguments: '<id>',
    summary: 'delete a webhook subscription, and its secret here',
    options: [JSON_FLAG],
    example: 'webhooks delete SUBSCRIPTION-ID',
    load: async () => (await import('./webhooks/subscriptions.ts')).deleteWebhookCommand,
  },
]
