import type { Feature } from '../daemon/feature.ts'
import { CONFIG_VERBS } from './verbs/administration.ts'
import { KEY_VERBS, MIRROR_VERBS } from './verbs/mirror.ts'
import { SECTIONS, type Verb, type VerbPart, type Verbs } from './verbs/verb.ts'
import { WEBHOOK_VERBS } from './verbs/webhooks.ts'

/** Commands about the program itself. */
const PROGRAM_VERBS: readonly Verb[] = [
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
  run: [...MIRROR_VERBS, ...CONFIG_VERBS],
  keep: KEY_VERBS,
}

/** Those that stand behind the commands of features. */
const CORE_LAST: Verbs = { service: [...WEBHOOK_VERBS, ...PROGRAM_VERBS] }

/** A group of the help page with its commands. */
interface Section {
  readonly section: (typeof SECTIONS)[number]
  readonly verbs: readonly Verb[]
}

/** Returns the commands of the core and of these features by the groups of the help page, in its order. */
export function sectionsOf(features: readonly Feature[]): readonly Section[] {
  const all: Verbs[] = [CORE, ...features.map(({ verbs = {} }) => verbs), CORE_LAST]
  return SECTIONS.map((section) => ({ section, verbs: joinedByPath(all.flatMap((verbs) => verbs[section] ?? [])) }))
}

/** Returns each command once, with the options and forms of all its parts. */
function joinedByPath(parts: readonly VerbPart[]): Verb[] {
  const byPath = Map.groupBy(parts, ({ path }) => path)
  return [...byPath].map(([path, same]) => same.reduce<Verb>(joined, { path, summary: '' }))
}

function joined(verb: Verb, part: VerbPart): Verb {
  const options = [...(verb.options ?? []), ...(part.options ?? [])]
  const forms = [...(verb.forms ?? []), ...(part.forms ?? [])]
  return { ...verb, ...part, options, forms }
}

/** Returns every command of the core and of these features, in the order of the help pages. */
export function verbsOf(features: readonly Feature[]): readonly Verb[] {
  return sectionsOf(features).flatMap(({ verbs }) => verbs)
}
