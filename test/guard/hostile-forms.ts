import type { Hostile, Doc } from './hostile.ts'

type Affected = NonNullable<Doc['affected']>[number]
type Event = Record<string, unknown>

/** Entries that name a package; those of commits may not. */
const each = (doc: Doc, use: (one: Affected) => void): void =>
  (doc.affected ?? []).filter((one) => 'package' in one).forEach(use)
const rename =
  (to: (name: string) => string) =>
  (doc: Doc): void =>
    each(doc, (one) => (one.package.name = to(one.package.name)))
const setEvents =
  (...events: readonly Event[]) =>
  (doc: Doc): void =>
    each(doc, (one) =>
      (one.ranges ?? []).forEach((range) => (range.events = events.map((event) => ({ ...event })) as never)),
    )
const eachVersion = (doc: Doc, to: (version: string) => string): void =>
  each(doc, (one) =>
    (one.ranges ?? []).forEach(({ events }) => {
      for (const event of events) if (event['fixed'] !== undefined) event['fixed'] = to(event['fixed'])
    }),
  )
const lowest = (doc: Doc): void => eachVersion(doc, () => '0.0.0.1')

/** Ways that change the form of records, alone or beside what hides. */
export const HOSTILE_FORMS: readonly Hostile[] = [
  [
    'ecosystems get a suffix',
    'affectedLost',
    (doc) => each(doc, (one) => (one.package.ecosystem = `${one.package.ecosystem}:X`)),
  ],
  [
    'ranges of commits take the place of others, with the same versions',
    'incomparable',
    (doc) =>
      each(doc, (one) =>
        (one.ranges ?? []).forEach((range) => {
          range.type = 'GIT'
          Object.assign(range, { repo: 'https://git.example/p' })
        }),
      ),
  ],
  [
    'affected is split in two entries, of which each has half',
    'affectedLost',
    (doc) => {
      const halves = (doc.affected ?? []).flatMap((one) => {
        const ranges = (one.ranges ?? []).map((range) => ({
          ...range,
          events: [{ introduced: '0' }, { fixed: '0.0.1' }],
        }))
        return [
          { ...one, ranges },
          { ...one, ranges, versions: [] },
        ]
      })
      doc.affected = halves
    },
  ],
  ['fixes are version 0 as a number', 'incomparable', setEvents({ introduced: '0' }, { fixed: 0 })],
  ['versions are numbers', 'incomparable', setEvents({ introduced: 0 }, { fixed: 1.5 })],
  ['events are objects without members', 'affectedLost', setEvents({})],
  ['events have a member that nobody knows', 'affectedLost', setEvents({ since: '0' }, { until: '9' })],
  ['fixes get a leading v and are lower', 'affectedLost', (doc) => eachVersion(doc, () => 'v0.0.1')],
  ['fixes are padded with zeros and lower', 'affectedLost', (doc) => eachVersion(doc, () => '0000.00.0001')],
  ['fixes are only white space', 'incomparable', (doc) => eachVersion(doc, () => ' ')],
  ['withdrawn is in the past', 'withdrawn', (doc) => (doc['withdrawn'] = '1999-01-01T00:00:00Z')],
  ['withdrawn is in the near future', 'withdrawn', (doc) => (doc['withdrawn'] = '2027-01-01T00:00:00Z')],
  [
    'records are withdrawn in favour of an alias',
    'withdrawn',
    (doc) => {
      doc['withdrawn'] = '2026-06-01T00:00:00Z'
      doc['aliases'] = [...((doc['aliases'] as string[] | undefined) ?? []), 'GHSA-xxxx-yyyy-zzzz']
      doc['details'] = 'Duplicate of GHSA-xxxx-yyyy-zzzz.'
    },
  ],
  [
    'records become one of an alias, without packages',
    'emptied',
    (doc) => {
      doc['aliases'] = [...((doc['aliases'] as string[] | undefined) ?? []), 'GHSA-xxxx-yyyy-zzzz']
      doc.affected = []
    },
  ],
  ['package names end with a dot', 'affectedLost', rename((name) => `${name}.`)],
  ['package names end with a slash', 'affectedLost', rename((name) => `${name}/`)],
  [
    'package names are percent-encoded',
    'affectedLost',
    rename((name) => name.replace(/[a-z]/, (one) => `%${one.charCodeAt(0).toString(16)}`)),
  ],
  [
    'package names are written with HTML',
    'affectedLost',
    rename((name) => name.replace(/[a-z]/, (one) => `&#${one.charCodeAt(0)};`)),
  ],
  [
    'package names have a combining mark',
    'nameDisguised',
    rename((name) => name.replace(/[a-z]/, (one) => `${one}\u0332`)),
  ],
  ['package names have a ligature', 'nameDisguised', rename((name) => `${name}ﬁ`)],
  ['package names end with a line break', 'nameDisguised', rename((name) => `${name}\n`)],
  ['package names end with white space', 'nameDisguised', rename((name) => `${name} `)],
  [
    'package names are lists',
    'affectedLost',
    (doc) => each(doc, (one) => (one.package.name = [one.package.name] as never)),
  ],
  [
    'packages are texts',
    'affectedLost',
    (doc) => each(doc, (one) => (one.package = `${one.package.ecosystem}/${one.package.name}` as never)),
  ],
  ['affected is an object', 'emptied', (doc) => (doc.affected = Object.assign({}, doc.affected) as never)],
  [
    'ranges are an object',
    'affectedLost',
    (doc) => each(doc, (one) => (one.ranges = Object.assign({}, one.ranges) as never)),
  ],
  [
    'types of ranges are in lower case, and fixes lower',
    'incomparable',
    (doc) => {
      lowest(doc)
      each(doc, (one) => (one.ranges ?? []).forEach((range) => (range.type = range.type.toLowerCase())))
    },
  ],
  [
    'events are in another order, and the fix is lower',
    'affectedLost',
    setEvents({ fixed: '0.0.0.1' }, { introduced: '0' }),
  ],
  [
    'a second fix below the first comes',
    'affectedLost',
    (doc) => each(doc, (one) => (one.ranges ?? []).forEach(({ events }) => events.splice(1, 0, { fixed: '0.0.0.1' }))),
  ],
  [
    'the last affected version and the fix are both low',
    'affectedLost',
    setEvents({ introduced: '0' }, { last_affected: '0.0.1' }, { fixed: '0.0.2' }),
  ],
  [
    'severity moves to a member that nobody reads',
    'severityLowered',
    (doc) => {
      doc['old_severity'] = doc.severity
      delete doc.severity
    },
  ],
  [
    'scores are written as numbers',
    'severityLowered',
    (doc) => {
      for (const one of doc.severity ?? []) one.score = 0 as never
    },
  ],
]
