import { RESOURCES } from '../../base/domain/resources.ts'
import { SOURCES, isPrivateSource } from '../../base/domain/sources.ts'
import type { Page } from './page.ts'

const OPEN = { label: null, access: 'open', usesStatus: false } as const
const KEYED = { label: null, access: 'key', usesStatus: false } as const
const CHANGES = { ...OPEN, isLog: true, isPrivate: asksForPrivate } as const
const ATOM = { type: 'application/atom+xml' } as const

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
  { ...OPEN, path: '', label: 'Overview', usesStatus: true, parameters: {} },
  {
    ...CHANGES,
    path: 'changes',
    label: 'Changes',
    parameters: {
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
    ...KEYED,
    path: 'runs',
    label: 'Runs',
    parameters: {
      source: 'Runs of this source only.',
      kind: 'Runs of this kind only.',
      state: 'Runs in this state only.',
      before: 'Runs with smaller numbers than this.',
    },
  },
  {
    ...KEYED,
    path: 'run',
    parameters: {
      id: 'The number of a run.',
      show: 'Of a quarantined run: what would be removed, changed or added.',
      at: 'Names before those on the page.',
    },
  },
  {
    ...OPEN,
    path: 'search',
    label: 'Search',
    parameters: {
      q: 'What is searched for.',
      after: 'The record after which the page begins.',
    },
  },
  { ...OPEN, path: 'cve', parameters: { id: 'A CVE, or another id of a vulnerability.' } },
  {
    ...OPEN,
    path: 'record',
    parameters: { id: 'The id of a record.', at: 'Affected packages before those on the page.' },
  },
  {
    ...OPEN,
    path: 'ecosystems',
    label: 'Ecosystems',
    parameters: { after: 'The name after which the page begins.' },
  },
  {
    ...OPEN,
    path: 'packages',
    parameters: {
      ecosystem: 'The name of an ecosystem.',
      prefix: 'How the names of packages begin.',
      after: 'The name after which the page begins.',
    },
  },
  {
    ...OPEN,
    path: 'package',
    parameters: {
      ecosystem: 'The name of an ecosystem.',
      name: 'The name of a package.',
      after: 'The record after which the page begins.',
    },
  },
  {
    ...KEYED,
    path: 'patches',
    label: 'Patches',
    parameters: { ...facetsOf('/v1/patches'), ...AFTER },
  },
  { ...KEYED, path: 'images', label: 'Images', parameters: AFTER },
  {
    ...KEYED,
    path: 'tags',
    parameters: { image: 'The id of an image; the tags of all images when not given.', ...AFTER },
  },
  { ...KEYED, path: 'tag', parameters: { id: 'The id of a tag.', ...ARTIFACTS } },
  { ...KEYED, path: 'avr', parameters: { id: 'The id of a set of artifacts.', ...ARTIFACTS } },
  { ...KEYED, path: 'tag-changes', label: 'Tag findings', parameters: OLDER },
  { ...KEYED, ...ATOM, path: 'tag-changes.atom', parameters: OLDER },
  {
    ...KEYED,
    path: 'bundles',
    label: 'Bundles',
    usesStatus: true,
    parameters: { before: 'Exported states with smaller numbers only.' },
  },
  { ...KEYED, path: 'relay', label: 'Relay', usesStatus: true, parameters: {} },
  {
    ...KEYED,
    path: 'webhooks',
    label: 'Webhooks',
    usesStatus: true,
    parameters: {
      state: 'Deliveries in this state only.',
      before: 'Deliveries with smaller numbers only.',
    },
  },
  { ...KEYED, path: 'sign-in', parameters: {} },
]

/** Reports whether a query names a tag, or a source whose changes take a key. */
function asksForPrivate(query: URLSearchParams): boolean {
  if ((query.get('tag')?.trim() ?? '') !== '') return true
  const source = SOURCES.find((one) => one === query.get('source')?.trim())
  return source !== undefined && isPrivateSource(source)
}

/** The filters of a list, each with where it is described. */
function facetsOf(path: string): Record<string, string> {
  const facets = RESOURCES.flatMap(({ list }) => (list?.path === path ? list.facets : []))
  return Object.fromEntries(facets.flatMap(({ param }) => (param === null ? [] : [[param, `As of ${path}.`]])))
}
