import { fillPath, canonicalPath } from '../../domain/path-templates.ts'
import { RESOURCES } from '../../domain/resources.ts'
import { type Fields, fieldsOf } from '../../json/objects.ts'
import { isNone } from '../../store/catalog/answers.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import { upstreamJson } from '../context.ts'
import { table, visible } from '../output.ts'
import type { LookupResult, LookupCall } from './snapshot.ts'

const ARTIFACTS = RESOURCES.find(({ name }) => name === 'tags')?.artifacts ?? []

/** How much of an artifact of a tag is stored. */
interface Artifact {
  readonly kind: string
  readonly path: string
  readonly state: 'stored' | 'the service has none' | 'not fetched yet' | 'not in scope'
  readonly documents: readonly { readonly digest: string; readonly type: string; readonly size: number }[] // prettier-ignore
}

/** Returns a listed tag: its names, its dates and its artifacts. */
export function tagFinding(stored: LookupCall, id: string, body: Buffer): LookupResult {
  const text = body.toString('utf8')
  const item = fieldsOf(JSON.parse(text))
  const { repository, tag, digest } = namesOfTag({ ...item })
  const artifacts = ARTIFACTS.map(({ path, document }) => artifactOf(stored, id, path, document))
  const facts = [
    ['id', id],
    ['digest', digest ?? 'none named'],
    ...Object.entries(item).flatMap(([name, value]) =>
      /_?at$|date|time/i.test(name) && typeof value === 'string' ? [[name, value]] : [],
    ),
    ...otherFacts(item),
  ]
  return {
    json: { kind: 'tag', id, repository, name: tag, digest, item: upstreamJson(text), artifacts },
    lines: [
      visible([repository, tag].filter((part) => part !== null).join(':')),
      ...facts.map(([name = '', value = '']) => `${name.padEnd(12)} ${visible(value)}`),
      '',
      table(['artifact', 'state', 'documents'], artifacts.map(rowOf)),
    ],
  }
}

/** Yes-or-no fields of the item, such as whether the tag is remediated. */
function otherFacts(item: Fields): string[][] {
  return Object.entries(item).flatMap(([name, value]) =>
    typeof value === 'boolean' ? [[name, value ? 'yes' : 'no']] : [],
  )
}

function artifactOf({ reads }: LookupCall, id: string, template: string, kind: string): Artifact {
  const { catalog } = reads
  const filled = fillPath(template, { id })
  const path = canonicalPath(filled) ?? filled
  const answer = catalog.readAnswer(path)
  const named = { kind, path, documents: [] }
  if (answer === null) {
    const isDue = catalog.isMissingPath(path) || catalog.hasAnswers(`tags/${id}`)
    return { ...named, state: isDue ? 'not fetched yet' : 'not in scope' }
  }
  if (isNone(answer)) return { ...named, state: 'the service has none' }
  const documents = answer.links.flatMap(({ digest, type }) => {
    const document = catalog.readDocument(digest)
    return document === null ? [] : [{ digest, type: type ?? document.type, size: document.size }]
  })
  return { ...named, state: 'stored', documents }
}

function rowOf({ kind, state, documents }: Artifact): string[] {
  const texts = documents.map(({ type, size, digest }) => `${type}, ${size} bytes, ${digest.slice(0, 12)}`) // prettier-ignore
  return [kind, state, texts.length === 0 ? '-' : texts.join('; ')]
}
