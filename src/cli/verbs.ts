import type { Feature } from '../daemon/feature.ts'
import { CONFIG_VERBS } from './verbs/administration.ts'
import { MIRROR_VERBS } from './verbs/mirror.ts'
import { SERVICE_VERBS } from './verbs/service.ts'
import { JSON_FLAG, SECTIONS, type Verb, type Verbs } from './verbs/verb.ts'
import { WEBHOOK_VERBS } from './verbs/webhooks.ts'

/** Commands about the program itself. */
const PROGRAM_VERBS: readonly Verb[] = [
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
    load: async () => {
      const { printCompletion } = await import('./completion.ts')
      return (shell: string, _options: object, features: readonly Feature[]) =>
        printCompletion(shell, verbsOf(features))
    },
  },
]

const CORE: Verbs = {
  mirror: MIRROR_VERBS,
  administration: CONFIG_VERBS,
  program: PROGRAM_VERBS,
  service: SERVICE_VERBS,
  webhooks: WEBHOOK_VERBS,
}

/** Returns every command of the core and of these features, in the order of the help pages. */
export function verbsOf(features: readonly Feature[]): readonly Verb[] {
  const all = [CORE, ...features.map(({ verbs = {} }) => verbs)]
  return SECTIONS.flatMap((section) => all.flatMap((verbs) => verbs[section] ?? []))
}
