import { counted } from '../../base/text.ts'
import { type Fields, eachObject, fieldsOf, isObject } from '../../base/json/objects.ts'
import { FINDINGS_CHANGED, namedBy } from '../../base/domain/event-types.ts'
import { type EventTarget, namesOf, targetsOf } from '../../base/domain/image-reference.ts'
import { causeWords, findingWords } from '../../store/findings/words.ts'
import { createTypeFilter, parseBody } from '../../webhooks/receive/event.ts'

/** Maximum length of a message, characters: below the limit of team workspaces. */
const MAX_TEXT = 2000
/** Maximum number of images, or of tags, in a message. */
const MAX_IMAGES = 10
/** Largest number of fixes that is shown. */
const MAX_FIXES = 1_000_000

/** Returns the body of a message for a team workspace: `{"text": "…"}`. */
export function chatBody(body: Uint8Array): Buffer {
  return Buffer.from(JSON.stringify({ text: bounded(summaryOf(body)) }))
}

/** Truncates between characters, never inside one. */
function bounded(text: string): string {
  const letters = Array.from(text)
  return letters.length <= MAX_TEXT ? text : `${letters.slice(0, MAX_TEXT - 1).join('')}…`
}

/** Describes an event or a snapshot, one line per named image or tag. */
function summaryOf(body: Uint8Array): string {
  const { event, named } = read(body)
  if (namedBy(event['type']) === 'snapshot') return snapshotLine(event)
  if (event['type'] === FINDINGS_CHANGED) return findingsLines(fieldsOf(event['data']))
  if (named === null) return 'The service reported a change; it names no image.'
  const all = targetsOf(named)
  const fixes = all.length === 1 ? fixesIn(event, 0) : null
  const lines = all.slice(0, MAX_IMAGES).map((target) => `${nameOf(target)}: ${changesOf(fixes)}`)
  const more = all.length - lines.length
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
}

function read(body: Uint8Array): { event: Fields; named: EventTarget | null } {
  const bytes = Buffer.from(body)
  const { target: named } = parseBody(bytes, createTypeFilter(['*'], ''))
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return { event: isObject(value) ? value : {}, named }
  } catch {
    return { event: {}, named }
  }
}

function snapshotLine(event: Fields): string {
  const data = isObject(event['data']) ? event['data'] : {}
  const counts = isObject(data['counts']) ? data['counts'] : null
  const name = data['source']
  // Another mirror's event can be relayed too: only a plain word, since workspaces interpret more than `<` as markup.
  const source = typeof name === 'string' && /^[a-z]{1,20}$/.test(name) ? name : 'a mirror'
  const changed = counts === null ? null : [counts['added'], counts['changed'], counts['removed']]
  const changes = changed?.every((one) => typeof one === 'number')
    ? `${String(changed[0])} added, ${String(changed[1])} changed, ${removedWords(changed[2] ?? 0, fieldsOf(data['left']))}`
    : 'everything may have changed'
  const doubts = Array.isArray(data['doubts']) ? data['doubts'].length : 0
  const warning = doubts > 0 ? ' It has changes that may hide findings: see the status of the mirror.' : ''
  const partial = data['partial'] === true ? ' It is partial: it lacks some of what upstream lists.' : ''
  return `New snapshot of ${source}: ${changes}.${partial}${warning}`
}

/** What left the mirror without being known to be removed upstream is not called removed. */
function removedWords(removed: number, { count, cause }: Fields): string {
  const left = Math.min(countOf(count), removed)
  if (left === 0) return `${removed} removed`
  const because = cause === 'scope' || cause === 'rollback' ? causeWords(cause) : null
  return `${removed - left} removed, ${left} not mirrored any more (${because ?? 'whether upstream removed them is not known'})`
}

/** One line for each tag, and before them their sum where there are more of them. */
function findingsLines(data: Fields): string {
  const changed = [...eachObject(data['changes'])].slice(0, MAX_IMAGES)
  const lines = changed.map((one) => {
    const { name } = fieldsOf(one['tag'])
    return `${typeof name === 'string' ? plain(name.slice(0, 200)) : 'a tag'}: ${wordsOf(one)}`
  })
  const tags = Math.max(countOf(data['tags']), lines.length)
  if (lines.length === 0) return 'The findings of tags changed.'
  if (tags === lines.length) return lines.join('\n')
  return [`${tags} tags: ${wordsOf(data)}`, ...lines, `and ${tags - lines.length} more`].join('\n')
}

function wordsOf(one: Fields): string {
  const found = countOf(one['newFindings'])
  const gone = countOf(one['goneFindings'])
  const fixes = countOf(one['newFixes'])
  const fixesGone = countOf(one['goneFixes'])
  const known = (value: unknown): number | null => (typeof value === 'number' ? countOf(value) : null)
  const foundFixable = known(one['newFixable'])
  const goneFixable = known(one['goneFixable'])
  const whyGone = eachObject(one['changes']).flatMap(({ change, why }) => (change === 'gone' ? [why] : []))
  const counts = { found, foundFixable, gone, goneFixable, fixes, fixesGone, cause: one['cause'], whyGone }
  return findingWords(counts) || 'its findings changed'
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}

function nameOf(target: EventTarget): string {
  const { repository, tag, digest } = namesOf(target)
  const byDigest = digest === null ? '' : `@${digest}`
  const reference = tag === null ? byDigest : `:${tag}`
  return plain(`${repository ?? 'an image'}${reference}`)
}

function changesOf(fixes: number | null): string {
  if (fixes === null) return 'a new remediated image is available'
  return counted(fixes, 'new fix', 'new fixes')
}

/** Returns the number of fixes in an event: a number, or a list, in a field with such a name. Null if there is none. */
function fixesIn(value: unknown, depth: number): number | null {
  if (!isObject(value) || depth > 4) return null
  for (const [name, one] of Object.entries(value)) {
    const count = Array.isArray(one) ? one.length : one
    const isCount = typeof count === 'number' && Number.isInteger(count)
    if (FIXES.test(name.toLowerCase().replace(/[^a-z]/g, '')) && isCount && count >= 0)
      return Math.min(count, MAX_FIXES)
    const inner = fixesIn(one, depth + 1)
    if (inner !== null) return inner
  }
  return null
}

const FIXES =
  /^(new)?(fix(es|ed)?|patch(es|ed)|remediat(ed|ions)|(cves?|vulnerabilit(y|ies))(fixed|patched|remediated)|(fixed|patched|remediated)(cves?|vulnerabilities))(count|total)?$/

/** Removes control characters, and escapes what workspaces interpret as a link or a mention. */
function plain(text: string): string {
  return text.replace(/\p{C}/gu, ' ').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
