import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** The command of this feature. */
export const RELAY_VERBS: readonly Verb[] = [
  {
    path: 'relay',
    summary: 'where events are passed on to, and the state of each target',
    options: [JSON_FLAG],
    forms: [
      {
        options: [['--enable <target>', 'send to a disabled target again; try a failing one at once'], JSON_FLAG],
        load: async () => (await import('./cli.ts')).enableTargetCommand,
      },
      {
        options: [['--secret', 'what a receiver needs to verify what this mirror passes on'], JSON_FLAG],
        load: async () => (await import('./cli.ts')).relaySecretCommand,
      },
    ],
    after: '\nA target is named by its name in relay.targets, or by its id. Exit status 1: one is disabled.',
    example: 'relay --enable ci',
    load: async () => (await import('./cli.ts')).relayStatusCommand,
  },
]
