import { ADMINISTRATION_VERBS } from './verbs/administration.ts'
import { BUNDLE_VERBS } from './verbs/bundle.ts'
import { FLEET_VERBS } from './verbs/fleet.ts'
import { LOOKUP_VERBS } from './verbs/lookup.ts'
import { MIRROR_VERBS } from './verbs/mirror.ts'
import { SERVICE_VERBS } from './verbs/service.ts'
import { JSON_FLAG, type Verb } from './verbs/verb.ts'
import { WEBHOOK_VERBS } from './verbs/webhooks.ts'

/** Every command, in the order of the help pages. */
export const VERBS: readonly Verb[] = [
  ...MIRROR_VERBS,
  ...LOOKUP_VERBS,
  ...ADMINISTRATION_VERBS,
  ...BUNDLE_VERBS,
  ...FLEET_VERBS,
  {
    path: 'version',
    summary: 'the version; as JSON also the formats of database and bundles',
    options: [JSON_FLAG],
    example: 'version --json',
    load: async () => (await import('./version.ts')).versionCommand,
  },
  {
    path: 'completion',
    arguments: '<shell>',
    summary: 'print the completion script of bash, zsh or fish',
    example: 'completion bash',
    load: async () => (await import('./completion.ts')).completionOf(VERBS),
  },
  ...SERVICE_VERBS,
  ...WEBHOOK_VERBS,
]
