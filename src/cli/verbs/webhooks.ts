import { DELIVERY } from '../after-texts.ts'
import { JSON_FLAG, type Flag, type Verb } from './verb.ts'

/** Where secrets come from that a command tries. */
export const SECRETS: Flag = ['--secret-file <file>', 'secrets, one a line; default: those stored here']
const ALL_DEAD: Flag = ['--all', 'all dead letters']

/** Commands about events of the service. */
export const WEBHOOK_VERBS: readonly Verb[] = [
  { path: 'webhooks', summary: 'events' },
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
