import { JSON_FLAG, OUT, type Verb } from './verb.ts'

/** Commands that ask the service with upstream's credential. */
export const SERVICE_VERBS: readonly Verb[] = [
  {
    path: 'whoami',
    summary: "the account behind upstream's credential",
    options: [JSON_FLAG],
    example: 'whoami',
    load: async () => (await import('../service/account.ts')).whoamiCommand,
  },
  {
    path: 'users',
    summary: 'the users of the organization',
    options: [JSON_FLAG],
    example: 'users',
    load: async () => (await import('../service/account.ts')).listUsersCommand,
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
    load: async () => (await import('../service/api-keys.ts')).createApiKeyCommand,
  },
  {
    path: 'api-keys list',
    arguments: '[id]',
    summary: 'the keys, or all about one but the key itself',
    options: [JSON_FLAG],
    example: 'api-keys list',
    load: async () => (await import('../service/api-keys.ts')).listApiKeysCommand,
  },
  {
    path: 'api-keys delete',
    arguments: '<id>',
    summary: 'delete a key; what uses it is refused from then on',
    options: [JSON_FLAG],
    example: 'api-keys delete KEY-ID',
    load: async () => (await import('../service/api-keys.ts')).deleteKeyCommand,
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
    load: async () => (await import('../service/subscriptions.ts')).addSubscriptionsCommand,
  },
  {
    path: 'subscriptions list',
    arguments: '[id]',
    summary: 'the subscriptions, or all about one',
    options: [JSON_FLAG],
    example: 'subscriptions list',
    load: async () => (await import('../service/subscriptions.ts')).listSubscriptionsCommand,
  },
  {
    path: 'subscriptions remove',
    arguments: '<id...>',
    summary: 'remove subscriptions',
    options: [JSON_FLAG],
    example: 'subscriptions remove SUBSCRIPTION-ID',
    load: async () => (await import('../service/subscriptions.ts')).removeSubscriptionsCommand,
  },
]
