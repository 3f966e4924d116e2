import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** The commands of this feature. */
export const RELAY_VERBS: readonly Verb[] = [
  { path: 'relay', summary: 'where events are passed on to' },
  {
    path: 'relay status',
    summary: 'the state of each target',
    options: [JSON_FLAG],
    example: 'relay status',
    load: async () => (await import('./cli.ts')).relayStatusCommand,
  },
  {
    path: 'relay enable',
    arguments: '<id>',
    summary: 'send to a disabled target again; try a failing one at once',
    options: [JSON_FLAG],
    example: 'relay enable 1',
    load: async () => (await import('./cli.ts')).enableTargetCommand,
  },
  {
    path: 'relay secret',
    summary: 'what a receiver needs to verify what this mirror passes on',
    options: [JSON_FLAG],
    example: 'relay secret',
    load: async () => (await import('./cli.ts')).relaySecretCommand,
  },
]
