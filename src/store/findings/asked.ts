import { type Identity, type Question, decisiveName } from '../../base/identity/identity.ts'
import { findEcosystem } from '../../base/versions/ecosystems.ts'
import type { FindingComponent } from './writes.ts'

/** Who a stored component is, as far as it is judged by that. */
type StoredIdentity = Pick<Identity, 'ecosystem' | 'version' | 'questions' | 'doubt'>

/** What of a component says who it is. */
export type StoredAsked = Pick<FindingComponent, 'ecosystem' | 'name' | 'version' | 'asked'>

interface AskedJson {
  readonly questions: readonly (readonly [string, string, string, Question['by']])[]
  readonly stream: string | null
  readonly doubt: string | null
}

/** Returns what is stored of an identity beside name and version; '' where these are all. */
export function writeAsked({ questions, doubt }: Pick<Identity, 'questions' | 'doubt'>): string {
  const stream = questions[0]?.stream ?? null
  if (questions.length === 1 && doubt === null && stream === null) return ''
  const written: AskedJson = {
    questions: questions.map(({ ecosystem, name, version, by }) => [ecosystem.name, name, version, by]),
    doubt,
    stream,
  }
  return JSON.stringify(written)
}

/** Returns who a stored component is; null for an ecosystem that is not known here. */
export function readAsked({ ecosystem, name, version, asked }: StoredAsked): StoredIdentity | null {
  const own = findEcosystem(ecosystem)
  if (own === null) return null
  if (asked === '')
    return {
      ecosystem: own,
      version,
      questions: [{ ecosystem: own, name, version, stream: null, by: 'name', unless: null }],
      doubt: null,
    }
  const { questions, doubt, stream } = JSON.parse(asked) as AskedJson
  const known = questions.flatMap(([of, called, at, by]): Question[] => {
    const found = findEcosystem(of)
    if (found === null) return []
    const unless = by === 'source' ? decisiveName(found, name, at) : null
    return [{ ecosystem: found, name: called, version: at, stream, by, unless }]
  })
  return { ecosystem: own, version, questions: known, doubt }
}
