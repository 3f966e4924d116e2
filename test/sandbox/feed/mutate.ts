import { type GenerateOptions, generateRecord, seconds } from './generate.ts'
import { sentence } from './text-generator.ts'
import type { Random } from './random.ts'
import type { FeedParts } from './types.ts'
import { type Stored, store } from './representation.ts'

type Json = Record<string, unknown>

/** A record's bytes and stamp after a change. */
interface Changed {
  bytes: Buffer
  modified: string
}

/** What happens to a record's `modified`: forward to the clock, back by days, or nothing. */
export type Stamp = 'forward' | 'backward' | 'same'

/** What changes in a record: its text or a new fix; `withdrawn` is added; each fix is one lower; nothing but id and date stays. */
export type Edit = 'content' | 'withdraw' | 'lower' | 'empty'

/** Changes a record's content and its stamp, keeping its indentation. Null when it is no JSON object, or has no fix to lower. */
export function mutate(
  random: Random,
  record: { bytes: Buffer; modified: string },
  how: { stamp: Stamp; now: number; edit?: Edit },
): Changed | null {
  const text = record.bytes.toString()
  const doc = parseObject(text)
  if (doc === null) return null
  const modified = nextStamp(random, record.modified, how.stamp, how.now)
  if (how.stamp !== 'same') doc['modified'] = modified
  const { edit = 'content' } = how
  if (edit === 'withdraw') doc['withdrawn'] = seconds(how.now)
  else if (edit === 'empty') for (const name of Object.keys(doc)) if (!LEFT.has(name)) Reflect.deleteProperty(doc, name)
  if (edit === 'content') changeContent(random, doc)
  if (edit === 'lower' && !lowerFixes(doc)) return null
  return { bytes: Buffer.from(JSON.stringify(doc, null, indentOf(text))), modified }
}

function indentOf(text: string): number {
  if (text.startsWith('{\n    ')) return 4
  return text.startsWith('{\n') ? 2 : 0
}

/** The stamp after a change; always another text than before unless it is to stay the same. */
function nextStamp(random: Random, old: string, stamp: Stamp, now: number): string {
  if (stamp === 'same') return old
  const time = Date.parse(old)
  const from = Number.isNaN(time) ? 0 : time
  if (stamp === 'backward') return seconds(from - random.between(1, 30) * 86_400_000)
  return seconds(Math.max(now, from + 1000))
}

function changeContent(random: Random, doc: Json): void {
  const events = firstEvents(doc)
  if (events !== null && random.chance(0.7)) {
    const versions = events.map((event) => event['fixed']).filter((v) => typeof v === 'string')
    events.push({ fixed: nextVersion(versions.at(-1) ?? '1.0.0') })
    return
  }
  const before = typeof doc['details'] === 'string' ? doc['details'] : ''
  doc['details'] = `${before} ${sentence(random)}`.trimStart()
}

/** Fields of an emptied record. */
const LEFT = new Set(['schema_version', 'id', 'modified'])

/** Lowers the last number of each fixed version by one; false when there is none. */
function lowerFixes(doc: Json): boolean {
  let lowered = false
  for (const { ranges } of asList(doc['affected']))
    for (const { events } of asList(ranges))
      for (const event of asList(events)) {
        const before = event['fixed']
        if (typeof before !== 'string') continue
        const after = before.replace(/([1-9]\d*)(?=\D*$)/, (digits) =>
          String(Number(digits) - 1).padStart(digits.length, '0'),
        )
        event['fixed'] = after
        lowered ||= after !== before
      }
  return lowered
}

function firstEvents(doc: Json): Json[] | null {
  const affected = asList(doc['affected'])[0]
  const range = asList(affected?.['ranges'])[0]
  const events = range?.['events']
  return Array.isArray(events) ? (events as Json[]) : null
}

function asList(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : []
}

/** The last number in a version, one higher: `8.1-r00071` → `8.1-r00072`. */
function nextVersion(version: string): string {
  const [, head = version, digits = '0'] = /^(.*?)(\d+)\D*$/.exec(version) ?? []
  return head + String(Number(digits) + 1).padStart(digits.length, '0')
}

function parseObject(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null
  } catch {
    return null
  }
}

/** How many of a seed's first records are kept once they are generated, and of how many kinds of feeds. */
const KEPT = { records: 2_500, feeds: 12 }

/** Generated records in their stored form, by what they follow from: a process may start many sandboxes. */
const generated = new Map<string, Omit<Stored, 'lastModified'>[]>()

/** The i-th record of a feed, from memory if an earlier sandbox of this process has generated it. */
function recordOf(options: GenerateOptions, i: number): Omit<Stored, 'lastModified'> {
  const { seed, large, malformedIds, malformed, at } = options
  const make = (): Stored => {
    const { id, modified, bytes } = generateRecord(options, i)
    return store(id, modified, bytes, 0)
  }
  if (at !== undefined || i >= KEPT.records) return make()
  const key = JSON.stringify([seed, large, malformedIds, malformed])
  const kept = generated.get(key) ?? []
  if (!generated.has(key) && generated.size < KEPT.feeds) generated.set(key, kept)
  return (kept[i] ??= make())
}

/** Generates records one after the other, never an id that is already there. */
export function createSupply({ options, records, clock, publisher }: FeedParts): {
  generate: () => Promise<void>
  next: (at: number) => string
} {
  let i = 0
  const take = (lastModified: number, at?: number): string => {
    for (;;) {
      const malformedIds = options.records >= 50
      const made = recordOf({ ...options, malformedIds, ...(at !== undefined && { at }) }, i++)
      if (records.has(made.id)) continue
      records.set(made.id, { ...made, lastModified })
      return made.id
    }
  }
  return {
    next: (at) => take(at, options.now()),
    async generate() {
      while (records.size < options.records) {
        take(clock.current())
        if (records.size % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      publisher.publish([])
    },
  }
}
