import { gzipSync } from 'node:zlib'
import type { Config } from '../../src/config/schema.ts'
import { loadQuick } from '../support/limits.ts'
import { sha256Of } from '../../src/base/digest.ts'
import { createRecordGuard } from '../../src/guard/guard.ts'
import type { Standard, GuardVerdict } from '../../src/guard/verdict.ts'
import type { Doubt } from '../../src/base/domain/doubts.ts'

/** A record as parsed, with the fields that mutations change. */
export interface Doc {
  [field: string]: unknown
  id: string
  modified: string
  affected?: Affected[]
  severity?: { type: string; score: string }[]
}
interface Affected {
  [field: string]: unknown
  package: { ecosystem: string; name: string }
  ranges?: { type: string; events: Record<string, string>[] }[]
  versions?: string[]
}

type Mutation = (doc: Doc) => void
/** A change that upstream, or who has broken into it, makes to every record that it fits; `kind` must notice it. */
export type Hostile = readonly [name: string, kind: Doubt, mutate: Mutation]

export const NOW = Date.UTC(2026, 6, 1)

/** Entries that name a package; those of commits may not. */
const affectedOf = (doc: Doc): Affected[] => (doc.affected ?? []).filter((one) => 'package' in one)
const eachRange = (doc: Doc, use: (events: Record<string, string>[]) => void): void => {
  for (const { ranges = [] } of affectedOf(doc)) for (const { events } of ranges) use(events)
}
const eachFix = (doc: Doc, change: (fixed: string) => string): void => {
  eachRange(doc, (events) => {
    for (const event of events) if (event['fixed'] !== undefined) event['fixed'] = change(event['fixed'])
  })
}
const eachType = (doc: Doc, change: (type: string) => string): void => {
  for (const { ranges = [] } of affectedOf(doc)) for (const range of ranges) range.type = change(range.type)
}
const eachAffected = (doc: Doc, use: (one: Affected) => void): void => {
  for (const one of affectedOf(doc)) use(one)
}
/** Sets the first number that is not an epoch. */
const firstNumber = (to: (n: number) => string) => (version: string) =>
  version.replace(/^(\d+:)?(\d+)/, (_all, epoch = '', n: string) => `${epoch}${to(Number(n))}`)
const lastPatch = (version: string) => version.replace(/(\d+)$/, (n) => `${Math.max(0, Number(n) - 1)}`)
const ecosystem = (to: (name: string) => string) => (doc: Doc) =>
  eachAffected(doc, (one) => (one.package.ecosystem = to(one.package.ecosystem)))

/** Several ways for each of the kinds. */
export const HOSTILE: readonly Hostile[] = [
  ['every fix becomes version 0', 'affectedLost', (doc) => eachFix(doc, () => '0')],
  ['every fix becomes 0.0.1', 'affectedLost', (doc) => eachFix(doc, () => '0.0.1')],
  [
    'the major version of fixes is lowered',
    'affectedLost',
    (doc) =>
      eachFix(
        doc,
        firstNumber((n) => `${Math.max(0, n - 1)}`),
      ),
  ],
  ['the last number of fixes is one lower', 'affectedLost', (doc) => eachFix(doc, lastPatch)],
  [
    'the second number of fixes becomes 0',
    'affectedLost',
    (doc) => eachFix(doc, (fixed) => fixed.replace(/^(\D*\d+\.)\d+/, (_all, head: string) => `${head}0`)),
  ],
  [
    'the first number of fixes is a tenth',
    'affectedLost',
    (doc) =>
      eachFix(
        doc,
        firstNumber((n) => `${Math.floor(n / 10)}`),
      ),
  ],
  [
    'lowered fixes hide behind a new text',
    'affectedLost',
    (doc) => {
      eachFix(
        doc,
        firstNumber(() => '0'),
      )
      doc['details'] = 'Clarified.'
      doc['summary'] = 'Clarified.'
    },
  ],
  [
    'lowered fixes come with one more alias',
    'affectedLost',
    (doc) => {
      eachFix(
        doc,
        firstNumber(() => '0'),
      )
      doc['aliases'] = ['CVE-2026-0001']
    },
  ],
  ['all ranges are gone', 'affectedLost', (doc) => eachAffected(doc, (one) => (one.ranges = []))],
  ['the member ranges is gone', 'affectedLost', (doc) => eachAffected(doc, (one) => delete one.ranges)],
  [
    'ranges begin right before their fix',
    'affectedLost',
    (doc) =>
      eachRange(doc, (events) => {
        for (const event of events)
          if (event['introduced'] !== undefined)
            event['introduced'] = lastPatch(events.find(({ fixed }) => fixed !== undefined)?.['fixed'] ?? '9')
      }),
  ],
  [
    'ranges begin at a version that nobody has',
    'affectedLost',
    (doc) =>
      eachRange(doc, (events) => {
        for (const event of events) if (event['introduced'] !== undefined) event['introduced'] = '999999'
      }),
  ],
  [
    'fixes become a last affected version 0',
    'affectedLost',
    (doc) =>
      eachRange(doc, (events) => {
        events.splice(0, events.length, { introduced: '0' }, { last_affected: '0' })
      }),
  ],
  [
    'a gap opens below the fix, which stays',
    'affectedLost',
    (doc) =>
      eachRange(doc, (events) => {
        const fix = events.findLast(({ fixed }) => fixed !== undefined)?.['fixed']
        if (fix !== undefined)
          events.splice(
            0,
            events.length,
            { introduced: '0' },
            { fixed: '0.0.1' },
            { introduced: lastPatch(fix) },
            { fixed: fix },
          )
      }),
  ],
  [
    'ranges get two low fixes and another beginning',
    'affectedLost',
    (doc) =>
      eachRange(doc, (events) => {
        if (events.some(({ fixed }) => fixed !== undefined))
          events.splice(
            0,
            events.length,
            { introduced: '0.0.0' },
            { fixed: '0.0.1' },
            { introduced: '0.0.2' },
            { fixed: '0.0.3' },
          )
      }),
  ],
  [
    'ranges lie above all before, with a raised fix',
    'affectedLost',
    (doc) =>
      eachRange(doc, (events) => {
        events.splice(0, events.length, { introduced: '999998' }, { fixed: '999999' })
      }),
  ],
  ['a limit is far below', 'affectedLost', (doc) => eachRange(doc, (events) => events.push({ limit: '0.0.1' }))],
  [
    'ranges make way for one listed version',
    'affectedLost',
    (doc) =>
      eachAffected(doc, (one) => {
        one.ranges = []
        one.versions = [...(one.versions ?? []).slice(0, 1), '0.0.0.0'].slice(0, 1)
      }),
  ],
  ['ranges become commits', 'incomparable', (doc) => eachType(doc, () => 'GIT')],
  ['ranges become of a type that nobody knows', 'incomparable', (doc) => eachType(doc, (type) => `${type}2`)],
  ['versions of fixes cannot be read', 'incomparable', (doc) => eachFix(doc, () => 'none yet ; see text')],
  [
    'ranges get thousands of events',
    'incomparable',
    (doc) =>
      eachRange(doc, (events) => {
        for (let i = 0; i < 2001; i++) events.push({ introduced: `0.0.${i}` }, { fixed: `0.0.${i}.1` })
      }),
  ],
  [
    'a package with a long name is added, and fixes are lowered',
    'incomparable',
    (doc) => {
      eachFix(doc, () => '0')
      doc.affected?.push({ package: { ecosystem: 'npm', name: 'x'.repeat(301) } })
    },
  ],
  ['packages get other names', 'affectedLost', (doc) => eachAffected(doc, (one) => (one.package.name += '-unused'))],
  [
    'only an unknown package is left',
    'affectedLost',
    (doc) => {
      doc.affected = affectedOf(doc)
        .slice(0, 1)
        .map((one) => ({ ...one, package: { ...one.package, name: 'x' } }))
    },
  ],
  ['packages move to another release', 'affectedLost', ecosystem((name) => name.replace(/(:[\w.]+)?$/, ':none'))],
  ['all ecosystems become npm', 'affectedLost', ecosystem((name) => (name === 'npm' ? 'PyPI' : 'npm'))],
  ['all ecosystems become Android, which has no order', 'affectedLost', ecosystem(() => 'Android')],
  [
    'ecosystems lose their vendor',
    'affectedLost',
    ecosystem((name) => (name.startsWith('Root:') ? name.slice(5) : 'Bitnami')),
  ],
  ['ecosystems get another vendor', 'affectedLost', ecosystem((name) => `TuxCare:${name.replace(/^Root:/, '')}`)],
  [
    'ecosystems are written in lower case',
    'affectedLost',
    ecosystem((name) => (name === 'npm' ? 'NPM' : name.toLowerCase())),
  ],
  ['ecosystems get a white space', 'affectedLost', ecosystem((name) => ` ${name}`)],
  [
    'ecosystem and package name change at once',
    'affectedLost',
    (doc) => eachAffected(doc, (one) => (one.package = { ecosystem: 'Hackage', name: 'unused' })),
  ],
  [
    'the first package alone changes its ecosystem',
    'affectedLost',
    (doc) => {
      const [first] = affectedOf(doc)
      if (first !== undefined) first.package.ecosystem = 'Hackage'
    },
  ],
  [
    'every vector says no impact',
    'severityLowered',
    (doc) => {
      for (const one of doc.severity ?? []) one.score = 'CVSS:3.1/AV:P/AC:H/PR:H/UI:R/S:U/C:N/I:N/A:N'
    },
  ],
  ['vectors are gone', 'severityLowered', (doc) => delete doc.severity],
  ['lists of vectors are empty', 'severityLowered', (doc) => (doc.severity = [])],
  [
    'vectors need a local attacker',
    'severityLowered',
    (doc) => {
      for (const one of doc.severity ?? []) one.score = one.score.replace(/AV:\w/, 'AV:P').replace(/PR:\w/, 'PR:H')
    },
  ],
  [
    'scores are no vectors any more',
    'severityLowered',
    (doc) => {
      for (const one of doc.severity ?? []) one.score = '0.0'
    },
  ],
  [
    'vectors are cut off',
    'severityLowered',
    (doc) => {
      for (const one of doc.severity ?? []) one.score = one.score.slice(0, 20)
    },
  ],
  [
    'vectors are of another scale',
    'severityLowered',
    (doc) => {
      for (const one of doc.severity ?? []) one.type = 'CVSS_V2'
    },
  ],
  ['the list affected is empty', 'emptied', (doc) => (doc.affected = [])],
  ['the member affected is gone', 'emptied', (doc) => delete doc.affected],
  [
    'only id and date are left',
    'emptied',
    (doc) => {
      for (const name of Object.keys(doc)) if (name !== 'id' && name !== 'modified') Reflect.deleteProperty(doc, name)
    },
  ],
  [
    'only id, date and an empty text are left',
    'emptied',
    (doc) => {
      for (const name of Object.keys(doc)) if (name !== 'id' && name !== 'modified') Reflect.deleteProperty(doc, name)
      doc['details'] = ''
    },
  ],
  ['affected is no list', 'emptied', (doc) => ((doc as Record<string, unknown>)['affected'] = 'none')],
  ['records are withdrawn', 'withdrawn', (doc) => (doc['withdrawn'] = '2026-06-30T00:00:00Z')],
  ['records are withdrawn in the year 9999', 'withdrawn', (doc) => (doc['withdrawn'] = '9999-01-01T00:00:00Z')],
  ['records are modified in the year 9999', 'futureModified', (doc) => (doc.modified = '9999-12-31T23:59:59Z')],
  [
    'records are too long to be compared',
    'notCompared',
    (doc) => {
      doc['details'] = 'x'.repeat(2 ** 20)
      eachFix(doc, () => '0')
    },
  ],
  [
    'ranges end with a last affected version below all',
    'affectedLost',
    (doc) =>
      eachRange(doc, (events) => {
        for (const event of events)
          if (event['fixed'] !== undefined) {
            delete event['fixed']
            event['last_affected'] = '0.0.0.1'
          }
      }),
  ],
  [
    'the first event alone is left, and a limit',
    'affectedLost',
    (doc) => eachRange(doc, (events) => events.splice(1, events.length, { limit: '0.0.1' })),
  ],
  [
    'one branch in the middle begins late',
    'affectedLost',
    (doc) =>
      eachRange(doc, (events) => {
        const fix = events.findLast(({ fixed }) => fixed !== undefined)?.['fixed']
        if (fix !== undefined) events.splice(0, events.length, { introduced: lastPatch(fix) }, { fixed: fix })
      }),
  ],
  [
    'package names get a Cyrillic letter',
    'nameDisguised',
    (doc) =>
      eachAffected(
        doc,
        (one) =>
          (one.package.name = one.package.name.replace(/[aeocp]/, (letter) => 'аеоср'.charAt('aeocp'.indexOf(letter)))),
      ),
  ],
  [
    'package names get a character without width',
    'nameDisguised',
    (doc) => eachAffected(doc, (one) => (one.package.name = `${one.package.name}\u200b`)),
  ],
  [
    'package names get a mark of direction',
    'nameDisguised',
    (doc) => eachAffected(doc, (one) => (one.package.name = `\u202e${one.package.name}`)),
  ],
  [
    'package names get a soft hyphen',
    'nameDisguised',
    (doc) =>
      eachAffected(
        doc,
        (one) => (one.package.name = `${one.package.name.slice(0, 2)}\u00ad${one.package.name.slice(2)}`),
      ),
  ],
  [
    'package names are written full width',
    'nameDisguised',
    (doc) =>
      eachAffected(
        doc,
        (one) =>
          (one.package.name = one.package.name.replace(/[a-z]/g, (letter) =>
            String.fromCodePoint(letter.charCodeAt(0) + 0xfee0),
          )),
      ),
  ],
  [
    'package names get a digit for a letter',
    'nameDisguised',
    (doc) => eachAffected(doc, (one) => (one.package.name = one.package.name.replace('o', '0').replace('l', '1'))),
  ],
  ['ecosystems get a character without width', 'nameDisguised', ecosystem((name) => `${name}\u2060`)],
  [
    'ecosystems get a Greek letter',
    'nameDisguised',
    ecosystem((name) => name.replace('o', 'ο').replace('P', 'Ρ').replace('n', 'η')),
  ],
  ['aliases are gone', 'aliasesLost', (doc) => delete doc['aliases']],
  ['lists of aliases are empty', 'aliasesLost', (doc) => (doc['aliases'] = [])],
  ['aliases are added', 'idsChanged', (doc) => (doc['aliases'] = ['CVE-2026-0001'])],
  ['upstream ids are added', 'idsChanged', (doc) => (doc['upstream'] = ['CVE-2026-0001'])],
  [
    'aliases are exchanged',
    'aliasesLost',
    (doc) => {
      if (Array.isArray(doc['aliases'])) doc['aliases'] = doc['aliases'].map((_, at) => `CVE-1999-${1000 + at}`)
    },
  ],
  [
    'aliases get another year',
    'aliasesLost',
    (doc) => {
      if (Array.isArray(doc['aliases']))
        doc['aliases'] = doc['aliases'].map((alias) => String(alias).replace(/-20\d\d-/, '-1999-'))
    },
  ],
  [
    'impacts of vectors are gone',
    'severityLowered',
    (doc) => {
      for (const one of doc.severity ?? []) one.score = one.score.replace(/\/C:\w\/I:\w\/A:\w/, '/C:N/I:N/A:L')
    },
  ],
]

/** Changes as every feed has them: none may raise a doubt, however many records they change. */
export const BENIGN: readonly (readonly [name: string, mutate: Mutation])[] = [
  [
    'a fix is raised',
    (doc) =>
      eachFix(
        doc,
        firstNumber((n) => `${n + 1}`),
      ),
  ],
  [
    'a first fix is added',
    (doc) =>
      eachAffected(doc, (one) =>
        one.ranges?.push({ type: 'SEMVER', events: [{ introduced: '0' }, { fixed: '99.0.0' }] }),
      ),
  ],
  ['texts change', (doc) => (doc['details'] = `${String(doc['details'])} Now explained.`)],
  ['a package is added', (doc) => doc.affected?.push({ package: { ecosystem: 'npm', name: 'another' } })],
  [
    'a vector is added',
    (doc) => (doc.severity = [...(doc.severity ?? []), { type: 'CVSS_V4', score: 'CVSS:4.0/AV:N' }]),
  ],
  ['a date moves', (doc) => (doc.modified = '2026-06-30T23:00:00Z')],
  [
    'members change their order',
    (doc) => {
      const entries = Object.entries(doc)
      for (const [name] of entries) Reflect.deleteProperty(doc, name)
      Object.assign(doc, Object.fromEntries(entries.reverse()))
    },
  ],
]

const DEFAULTS = loadQuick({ env: {}, cwd: '/', requireUpstream: false }).config.guard

/** Applies a mutation; returns the new bytes. */
export function mutated(bytes: Buffer, mutate: Mutation): Buffer {
  const doc = JSON.parse(bytes.toString('utf8')) as Doc
  mutate(doc)
  return Buffer.from(JSON.stringify(doc))
}

/** Returns a record as it is stored. */
export function versionOf(bytes: Buffer) {
  const { id, modified } = JSON.parse(bytes.toString('utf8')) as Doc
  const body = gzipSync(bytes, { level: 1 })
  return { body, size: bytes.length, sha256: sha256Of(bytes), id, modified }
}

/** The default settings and those given, where nothing is known of earlier runs and of tags. */
export function standardOf(
  stored: number,
  limits: Partial<Config['guard']> = {},
  more: Partial<Standard> = {},
): Standard {
  return {
    settings: { ...DEFAULTS, ...limits },
    totalOf: () => stored,
    earlier: () => [],
    tagsOf: () => new Map(),
    ...more,
  }
}

/** Judges the change of records, each before and after, of a store of `stored`; `damage`: what became of the stored bytes. */
export function judged(
  pairs: Iterable<readonly [before: Buffer | null, after: Buffer]>,
  stored: number,
  limits: Partial<Config['guard']> = {},
  damage: (stored: Buffer, at: number) => Buffer = (body) => body,
  more: Partial<Standard> = {},
): GuardVerdict {
  const guard = createRecordGuard(standardOf(stored, limits, more), stored, NOW)
  let at = 0
  for (const [before, after] of pairs) {
    if (before?.equals(after) === true) continue
    const version = before === null ? null : versionOf(before)
    const old = version && { ...version, body: damage(version.body, at++) }
    guard.see(versionOf(after), { before: old, atStart: null }, () => old?.modified ?? null)
  }
  return guard.verdict()
}
