import { whyNotAllSearched } from '../../../server/lookup/missing-record.ts'
import { MirrorError } from '../../../base/errors.ts'
import { asSentence } from '../../lookup/answers/html.ts'
import type { Block } from '../blocks.ts'
import { code, count, link, plain, time } from '../../lookup/answers/cells.ts'
import { type PageCall, type PageView, parameter } from '../page.ts'

/** Rows on a page of packages or records. */
const PAGE = 100
/** Ecosystems on a page. */
const MOST_ECOSYSTEMS = 500

/** Loads the page of all ecosystems. */
export function loadEcosystemList(call: PageCall): PageView {
  const { ui, root, query } = call
  const after = parameter(query, 'after')
  const all = call.views((views) => views.listViews().filter(({ name }) => name > after))
  if (all === null) return { title: 'Ecosystems', blocks: [noViews(call)] }
  const shown = all.slice(0, MOST_ECOSYSTEMS)
  const rows = shown.map(({ name, records, prefixes }) => [
    link(name, ui('packages', { ecosystem: name })),
    count(records),
    plain(prefixes.length === 0 ? null : `without the prefix ${prefixes.join(', ')}`),
    link('all.zip', root(`/osv/${encodeURIComponent(name)}/all.zip`)),
  ])
  const more = all.length > shown.length ? ui('ecosystems', { after: shown.at(-1)?.name }) : null
  return {
    title: 'Ecosystems',
    blocks: [
      {
        kind: 'table',
        title: 'Ecosystems by name',
        columns: ['Ecosystem', 'Records', 'Derived', 'Archive'],
        rows,
        empty: 'No record names an ecosystem.',
        first: after === '' ? null : ui('ecosystems'),
        next: more,
      },
    ],
  }
}

/** Loads the page of the packages of an ecosystem. */
export function loadPackageList(call: PageCall): PageView {
  const { ui, query } = call
  const ecosystem = parameter(query, 'ecosystem')
  const prefix = parameter(query, 'prefix')
  const after = parameter(query, 'after')
  const title = `Packages of ${ecosystem}`
  const found = call.views((views) =>
    views.hasView(ecosystem) ? views.listPackages(ecosystem, prefix, after, PAGE + 1) : 'unknown',
  )
  if (found === null) return { title, blocks: [noViews(call)] }
  if (found === 'unknown')
    throw new MirrorError('not_found', `no record of this mirror names the ecosystem "${ecosystem}"`)
  const shown = found.slice(0, PAGE)
  const last = found.length > PAGE ? shown.at(-1)?.name : undefined
  return {
    title,
    blocks: [
      {
        kind: 'form',
        label: 'Packages by name',
        action: ui('packages'),
        hidden: [['ecosystem', ecosystem]],
        fields: [{ name: 'prefix', label: 'Name begins with', value: prefix, hint: 'openssl' }],
        button: 'Show',
      },
      {
        kind: 'table',
        title: 'Packages by name',
        columns: ['Package', 'Records'],
        rows: shown.map(({ name, records }) => [link(name, ui('package', { ecosystem, name })), count(records)]),
        empty: 'No package of this ecosystem has such a name.',
        first: after === '' ? null : ui('packages', { ecosystem, prefix }),
        next: last === undefined ? null : ui('packages', { ecosystem, prefix, after: last }),
      },
    ],
  }
}

/** Loads the page of the records that name a package. */
export function loadPackage(call: PageCall): PageView {
  const { ui, query, reads, now } = call
  const ecosystem = parameter(query, 'ecosystem')
  const name = parameter(query, 'name')
  const after = parameter(query, 'after')
  const title = `${name} (${ecosystem})`
  const found = call.views((views) => views.listCandidates(ecosystem, name, after, PAGE + 1))
  if (found === null) return { title, blocks: [noViews(call)] }
  const outside = [whyNotAllSearched(reads, ecosystem)].filter((why) => why !== null)
  const shown = found.slice(0, PAGE)
  const last = found.length > PAGE ? shown.at(-1)?.id : undefined
  return {
    title,
    blocks: [
      {
        kind: 'table',
        title: 'Records that name this package',
        note: 'In any version; the record says which ones are affected.',
        columns: ['Record', 'Modified'],
        rows: shown.map(({ id }) => [
          code(id, ui('record', { id })),
          time(reads.osv.readEntry(id)?.modified ?? null, now),
        ]),
        empty: asSentence(['no record of this mirror names this package', ...outside].join(': ')),
        first: after === '' ? null : ui('package', { ecosystem, name }),
        next: last === undefined ? null : ui('package', { ecosystem, name, after: last }),
      },
    ],
  }
}

/** Said instead of a result: what is not mirrored is not searched. */
export const NOTHING_MIRRORED: Block = {
  kind: 'notice',
  tone: 'warn',
  title: 'No records are mirrored yet',
  text: 'Which records and packages there are is not known before the first run of osv has ended.',
}

/** Returns a notice that the index of packages and other ids is not there, with the reason. */
export function noViews({ config, reads }: Pick<PageCall, 'config' | 'reads'>): Block {
  if (reads.snapshots.readSnapshot('osv') === null) return NOTHING_MIRRORED
  const { bucket, query } = config.views
  const isOn = bucket || query
  return {
    kind: 'notice',
    tone: 'warn',
    title: 'There is no index of packages and other ids',
    text: isOn
      ? 'It is built with the views for scanners, some seconds after records were stored. Records can be found by their own ids.'
      : 'It is built with the views for scanners, which the settings switch off: name bucket or query in views.serve. Records can be found by their own ids.',
  }
}
