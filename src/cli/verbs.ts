import type { Feature } from '../daemon/feature.ts'
import { CONFIG_VERBS } from './verbs/administration.ts'
import { mirrorVerbs } from './verbs/mirror.ts'
import { SERVICE_VERBS } from './verbs/service.ts'
import { JSON_FLAG, SECTIONS, type Verb, type Verbs } from './verbs/verb.ts'
import { WEBHOOK_VERBS } from './verbs/webhooks.ts'

/** Returns every command of the core and of these features, in the order of the help pages. */
export function verbsOf(features: readonly Feature[]): readonly Verb[] {
  const core: Verbs = {
    mirror: mirrorVerbs(features),
    administration: CONFIG_VERBS,
    program: programVerbs(features),
    service: SERVICE_VERBS,
    webhooks: WEBHOOK_VERBS,
  }
  const all = [core, ...features.map(({ verbs = {} }) => verbs)]
  return SECTIONS.flatMap((section) => all.flatMap((verbs) => verbs[section] ?? []))
}

/** Commands about the program itself. */
function programVerbs(features: readonly Feature[]): readonly Verb[] {
  return [
    {
      path: 'version',
      summary: 'the version; as JSON also the formats of database and bundles',
      options: [JSON_FLAG],
      example: 'version --json',
      load: async () => (await import('./version.ts')).versionWith(features),
    },
    {
      path: 'completion',
      arguments: '<shell>',
      summary: 'print the completion script of bash, zsh or fish',
      example: 'completion bash',
      load: async () => (await import('./completion.ts')).completionOf(verbsOf(features)),
    },
  ]
}
