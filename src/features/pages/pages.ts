import { existsSync } from 'node:fs'
import { secretFilePath } from '../../config/kinds/webhooks.ts'
import { SOURCES, isPrivateSource } from '../../base/domain/sources.ts'
import type { Page, PagePath } from './page.ts'
import { PATCHES } from '../../base/domain/resources.ts'

const OPEN = { access: 'open', usesStatus: false } as const
const KEYED = { access: 'key', usesStatus: false } as const
const STATUS = { ...KEYED, entry: 'Status', usesStatus: true } as const
const RUNS = { ...KEYED, entry: 'Status', tab: 'Runs' } as const
const SEARCH = { ...OPEN, entry: 'Vulnerabilities', tab: 'Search' } as const
const ECOSYSTEMS = { ...OPEN, entry: 'Vulnerabilities', tab: 'Ecosystems' } as const
const CHANGES = { ...OPEN, entry: 'Vulnerabilities', tab: 'Changes', isLog: true, isPrivate: asksForPrivate } as const
const IMAGES = { ...KEYED, entry: 'Images', tab: null } as const
const ATOM = { type: 'application/atom+xml' } as const

/** What every list takes. */
const FORMAT = { format: '`csv` or `json`: all rows that fit as a file.' }
const AFTER = { after: 'The position where the page begins, from the page before.' }
const OLDER = { before: 'Entries before this one only: the older pages of the feed.' }
const OF_TAG = { tag: 'Records about packages in the SBOM of this tag alone; it takes a key.' }

/** What the feeds of changes take. */
const FEED = {
  source: 'A source; catalog and identity take a key. All that may be read when not given.',
  ...OLDER,
  ecosystem: 'Records about packages of this ecosystem alone, with what changed in them.',
  purl: 'Records about this package alone, with what changed in them.',
  ...OF_TAG,
}

/** The filters of the list of patches. */
const PATCH_FILTERS = Object.fromEntries(
  PATCHES.facets.flatMap(({ param }) => (param === null ? [] : [[param, `As of ${PATCHES.path}.`]])),
)

/** What the pages of artifacts take beside the id. */
const ARTIFACTS = {
  q: 'Text that the name, version or purl of a component contains.',
  at: 'Components before those on the page.',
  statement: 'VEX statements before those on the page.',
  material: 'Materials before those on the page.',
  sbom: 'Which of several SBOMs is shown, from 0.',
  vex: 'Which of several VEX documents is shown, from 0.',
  provenance: 'Which of several provenance documents is shown, from 0.',
}

/** Every page, in the order of the navigation. */
export const PAGES: readonly Page[] = [
  { ...OPEN, path: '', isLive: true, entry: 'Status', tab: 'Overview', usesStatus: true, parameters: {} },
  {
    ...RUNS,
    path: 'runs',
    isLive: true,
    isList: true,
    parameters: {
      ...FORMAT,
      source: 'Runs of this source only.',
      kind: 'Runs of this kind only.',
      state: 'Runs in this state only.',
      show: '`all`: also each run that changed nothing.',
      before: 'Runs with smaller numbers than this.',
    },
  },
  {
    ...RUNS,
    path: 'run',
    parameters: {
      id: 'The number of a run.',
      show: 'Of a quarantined run: what would be removed, changed or added.',
      at: 'Names before those on the page.',
    },
  },
  {
    ...STATUS,
    path: 'webhooks',
    isList: true,
    tab: 'Webhooks',
    isOff: (config) => config.webhooks.secrets.length === 0 && !existsSync(secretFilePath(config)),
    parameters: { ...FORMAT, state: 'Deliveries in this state only.', before: 'Deliveries with smaller numbers only.' },
  },
  {
    ...STATUS,
    path: 'relay',
    isList: true,
    tab: 'Relay',
    isOff: ({ relay }) => relay.targets.length === 0,
    parameters: { ...FORMAT },
  },
  {
    ...STATUS,
    path: 'bundles',
    tab: 'Bundles',
    isOff: ({ bundle }) => bundle.outbox === null && bundle.inbox === null,
    parameters: { before: 'Exported states with smaller numbers only.' },
  },
  { ...STATUS, path: 'fleet', tab: 'Fleet', isOff: ({ fleet }) => fleet.url === null, parameters: {} },
  { ...KEYED, path: 'sign-in', entry: 'Status', tab: null, parameters: {} },
  {
    ...SEARCH,
    path: 'search',
    parameters: {
      q: 'What is searched for.',
      after: 'The record after which the page begins.',
    },
  },
  { ...SEARCH, path: 'cve', parameters: { id: 'A CVE.' } },
  {
    ...SEARCH,
    path: 'record',
    parameters: { id: 'The id of a record.', at: 'Affected packages before those on the page.' },
  },
  {
    ...ECOSYSTEMS,
    path: 'ecosystems',
    isList: true,
    parameters: { ...FORMAT, after: 'The name after which the page begins.' },
  },
  {
    ...ECOSYSTEMS,
    path: 'packages',
    isList: true,
    parameters: {
      ...FORMAT,
      ecosystem: 'The name of an ecosystem.',
      prefix: 'How the names of packages begin.',
      after: 'The name after which the page begins.',
    },
  },
  {
    ...ECOSYSTEMS,
    path: 'package',
    isList: true,
    parameters: {
      ...FORMAT,
      ecosystem: 'The name of an ecosystem.',
      name: 'The name of a package.',
      after: 'The record after which the page begins.',
    },
  },
  {
    ...KEYED,
    path: 'patches',
    isList: true,
    entry: 'Vulnerabilities',
    tab: 'Patches',
    parameters: { ...FORMAT, ...PATCH_FILTERS, ...AFTER },
  },
  {
    ...CHANGES,
    path: 'changes',
    isList: true,
    parameters: {
      ...FORMAT,
      source: 'A source; catalog and identity take a key.',
      since: 'A snapshot or its number, or a time in UTC: 2026-01-31, with a time, yesterday, monday, 7d.',
      entry: 'The number of a published snapshot in the log.',
      purl: 'Records about this package alone; with `since`.',
      ...OF_TAG,
      before: 'Published snapshots with smaller numbers only.',
      ...AFTER,
    },
  },
  { ...CHANGES, ...ATOM, path: 'changes.atom', parameters: FEED },
  {
    ...IMAGES,
    path: 'images',
    isList: true,
    parameters: {
      ...FORMAT,
      q: 'Text that the name or digest of a tag contains.',
      image: 'The repository or id of an image: its tags alone.',
      sort: 'By what the tags are ordered.',
      at: 'Tags before those on the page.',
    },
  },
  { ...IMAGES, path: 'tag', parameters: { id: 'The id of a tag.', ...ARTIFACTS } },
  {
    ...IMAGES,
    path: 'tag-findings',
    isList: true,
    parameters: {
      ...FORMAT,
      id: 'The id of a tag.',
      q: 'Text that the id, package or version of a finding contains.',
      at: 'Findings before those on the page.',
    },
  },
  { ...IMAGES, path: 'avr', parameters: { id: 'The id of a set of artifacts.', ...ARTIFACTS } },
  { ...IMAGES, path: 'tag-changes', isList: true, parameters: { ...FORMAT, ...OLDER } },
  { ...IMAGES, ...ATOM, path: 'tag-changes.atom', parameters: OLDER },
]

/** Former paths of pages, and where they lead. */
export const MOVED: readonly {
  readonly path: string
  readonly to: PagePath
  readonly parameters: Page['parameters']
}[] = [{ path: 'tags', to: 'images', parameters: { image: 'The repository or id of an image: its tags alone.' } }]

/** Reports whether a query names a tag, or a source whose changes take a key. */
function asksForPrivate(query: URLSearchParams): boolean {
  if ((query.get('tag')?.trim() ?? '') !== '') return true
  const source = SOURCES.find((one) => one === query.get('source')?.trim())
  return source !== undefined && isPrivateSource(source)
}
