import type { Config } from '../../config/schema.ts'
import type { MirrorError } from '../../base/errors.ts'
import { canonicalPath, fillPath } from '../../base/domain/path-templates.ts'
import {
  type CatalogResource,
  IDENTITY_VERSIONS,
  RELEASES,
  atVersion,
  identityVersion,
  listPathOf,
} from '../../base/domain/resources.ts'
import { SOURCES, type SourceName, activeSources } from '../../base/domain/sources.ts'
import { fieldsOfItem, itemObjectsOf } from '../../base/json/forms/item-fields.ts'
import { NAMES_NOT_FOUND, namesAreFound } from '../../base/json/forms/listed-names.ts'
import type { Fields } from '../../base/json/objects.ts'
import { type ListedRelease, listedRelease } from '../../base/json/releases.ts'
import { type Incompleteness, incompleteFields, requireWhole } from '../../store/catalog/completeness.ts'
import type { CatalogList } from '../../store/catalog/lists.ts'
import type { SnapshotOrigin } from '../http/origin.ts'
import type { Problem } from '../http/problems.ts'
import { notFetched, notReady, notSynced, scopeToCome } from '../snapshot/not-ready.ts'
import type { Origins } from '../snapshot/served.ts'

/** Explains why a path has no stored answer. */
export type Missing = ReturnType<typeof createMissing>

type Params = Readonly<Record<string, string>>

/**
 * Distinguishes the reasons why something is missing: 404 `not_mirrored` for what no synced list names, a 404 that names the
 * setting for what this mirror excludes, 503 for what is not fetched yet. That the service has nothing under a path is
 * reported only by its own stored answer (answers.ts).
 */
export function createMissing(config: Config, served: Origins) {
  const active = activeSources(config)
  /** Reports whether the list is stored. Imported content counts whatever the settings here are: the source mirror's apply. */
  const isMirrored = (resource: CatalogResource): boolean =>
    resource.list !== null && served.reads.catalog.readList(listPathOf(resource)) !== null
  const switchedOff = (resource: CatalogResource): Problem | null => {
    const { personal, name } = resource
    if (personal === null || isMirrored(resource)) return null
    if (config.catalog.personalData.includes(personal)) return null
    return leftOut(ownerOf(config), `${name} are personal data and not mirrored`, 'catalog.personalData')
  }
  /** The list is mirrored at another version of its surface than it was asked for at. */
  const elsewhere = (resource: CatalogResource): Problem | null => {
    if (resource.surface !== 'identity' || isMirrored(resource)) return null
    const own = identityVersion(config.identity.apiUrl)
    const others = [...(own === null ? [] : [own]), ...IDENTITY_VERSIONS]
      .map((version) => atVersion(resource, version))
      .filter((one) => one.list?.path !== resource.list?.path)
    const mirrored = others.find(isMirrored)
    const planned = own === null || !config.identity.mirrorUsers ? undefined : others[0]
    const isOwn = atVersion(resource, own).list?.path === resource.list?.path
    const other = mirrored ?? (isOwn ? undefined : planned)
    if (other === undefined || (isOwn && own !== null)) return null
    return leftOut(
      ownerOf(config),
      `${resource.name} are mirrored at ${other.list?.path ?? ''} alone`,
      'identity.apiUrl',
    )
  }
  return {
    /** Origin of a resource's source; a problem when the settings leave it out. Throws `not_ready` before its first snapshot. */
    origin(resource: CatalogResource | null): SnapshotOrigin | Problem {
      // Before anything has come, it is not known what the other mirror has.
      if (ownerOf(config) !== null && SOURCES.every((one) => served.knownOrigin(one) === null))
        return served.originOf(sourceOf(resource))
      const other = resource === null ? null : elsewhere(resource)
      if (other !== null) return other
      const off = resource === null ? null : switchedOff(resource)
      if (off !== null) return off
      const source = sourceOf(resource)
      const known = served.knownOrigin(source)
      if (known !== null || active.includes(source)) return served.originOf(source)
      return neverCame(ownerOf(config), source)
    },
    /** No list names it, the scope leaves it out, or it is still to be fetched. Throws `not_ready` for the last. */
    explain: (resource: CatalogResource | null, params: Params, path: string): Problem =>
      explainMissing(config, served, resource, params, path),
    /** The service refuses the path to the mirror's credential, whatever is stored of it; null: it does not. */
    refused(path: string, origin: SnapshotOrigin): Problem | null {
      const missing = served.reads.catalog.readMissingPath(path)
      if (missing?.status !== 403) return null
      const why = missing.reason ?? 'the mirror that this one has its data from was refused it'
      const message = `the service refuses this path to the mirror, which asks again in every sync: ${why}`
      return { status: 403, error: 'forbidden', message, origin }
    },
  }
}

/** The answer for a source of which nothing is stored, and which this mirror does not sync. */
function neverCame(owner: string | null, source: SourceName): Problem {
  const setting = source === 'identity' ? 'identity.apiUrl and identity.apiKey' : 'upstream.apiKey'
  if (owner === null) return leftOut(null, `this mirror has no credential for the ${source}`, setting)
  const why =
    owner === WRITER
      ? `nothing of the ${source} has come from the fleet’s store: ${WRITER} needs ${setting}`
      : `nothing of the ${source} has come in a bundle: the source mirror needs ${setting}, and exports it with "patchmirror bundle export FILE --sources ${source}"`
  return notInScope(why, setting)
}

/** Explains a path that has no stored answer (`Missing.explain`). */
function explainMissing(
  config: Config,
  served: Origins,
  resource: CatalogResource | null,
  params: Params,
  path: string,
): Problem {
  const { reads } = served
  const coming = (): MirrorError => notReady(reads, sourceOf(resource), path)
  const missing = reads.catalog.readMissingPath(path)
  if (missing !== null) throw missing.reason === null ? coming() : notFetched(path, missing.reason)
  if (resource === null) return explainRelease(config, served, params, path)
  if (resource.list === null && resource.item === null) return unnamed(config, served, path)
  if (resource.list === null) return notListed(config, 'answers')
  const list = reads.catalog.readList(listPathOf(resource))
  if (list === null) throw coming()
  const { id, repo } = params
  const objects = itemObjectsOf(resource.name)
  const found = repo === undefined ? (id ?? '') : reads.catalog.findEntryWith(list.id, [repo], objects)
  if (found === null || reads.catalog.readEntry(list.id, found) === null) {
    if (!denies(reads, list, repo === undefined ? null : resource)) return undenied(resource)
    return notListed(config, `list of ${resource.name}`, reads.catalog.whyIncomplete(list.path))
  }
  if (resource.reach === 'always') throw coming()
  return excludedOrPending(config, served, `${resource.name}/${found}`, path)
}

function sourceOf(resource: CatalogResource | null): SourceName {
  return resource?.surface === 'identity' ? 'identity' : 'catalog'
}

/** Explains a missing path of the package catalog, from the stored list of packages. */
function explainRelease(config: Config, served: Origins, params: Params, path: string): Problem {
  if (catalogOwner(config) === null && config.upstream.catalogUrl === null)
    return leftOut(null, 'the package catalog is not mirrored', 'upstream.catalogUrl')
  const { reads } = served
  const list = reads.catalog.readList('/v1/packages')
  if (list === null) throw notReady(reads, 'catalog', path)
  const { ecosystem, name, version, arch } = params
  const found = findReleases(reads, list.id, (one) => one.ecosystem === ecosystem && one.name === name)
  const incomplete = reads.catalog.whyIncomplete(list.path)
  if (found.length === 0) {
    if (!denies(reads, list, PACKAGES)) return undenied(PACKAGES)
    return notListed(config, 'list of packages', incomplete)
  }
  const exact = found.find(
    ({ release }) =>
      (version === undefined || release.version === version) && (arch === undefined || release.archs.includes(arch)),
  )
  if (exact !== undefined) return excludedOrPending(config, served, `packages/${exact.id}`, path)
  // The name is there, that version or architecture of it is not.
  const isMissing = (above: string): boolean => reads.catalog.readMissingPath(canonicalPath(above) ?? above) !== null
  const unread = [RELEASES.versions, RELEASES.details].map((form) => fillPath(form, params)).find(isMissing)
  if (unread !== undefined) throw notFetched(path, `what would name it, ${unread}, could not be fetched`)
  const isMirrored = found.some(({ id }) => reads.catalog.hasAnswers(`packages/${id}`))
  return isMirrored
    ? notListed(config, 'versions and architectures of the package', incomplete)
    : outOfScope(config, served, path)
}

/** Items of a list whose ids are looked for. */
const SAMPLE = 100

/**
 * Returns whether what a list does not name is not in it: each of its items has the names of the resource, or, without one,
 * they have ids of their own. An empty list names nothing; an item whose own name is not found may be what was asked for.
 */
function denies(
  { catalog }: Origins['reads'],
  list: CatalogList,
  named: Pick<CatalogResource, 'name'> | null,
): boolean {
  if (named !== null) {
    for (const { body } of catalog.eachEntry(list.id)) {
      const item = JSON.parse(body.toString('utf8')) as Fields
      if (!namesAreFound([item], named.name)) return false
    }
    return true
  }
  const order = { facet: null, field: null, descending: false }
  const query = { list: list.id, where: [], order, after: null, limit: SAMPLE }
  const entries = catalog.listEntries(query)
  return entries.length === 0 || entries.some(({ id }) => !isMadeUp(id))
}

/** Whether an item was stored under a digest, as it has no id. */
function isMadeUp(id: string): boolean {
  return /^-[0-9a-f]{32}$/.test(id)
}

function undenied({ name }: Pick<CatalogResource, 'name'>): Problem {
  const message = `${NAMES_NOT_FOUND}: not every item of the service's list of ${name} has a field that is known to name it, so whether it has this is not known here; ask the service itself`
  return { status: 501, error: 'not_supported', message }
}

const PACKAGES = { name: 'packages' }

/** The listed packages that a test accepts. Reads the whole list. */
function findReleases(
  reads: Origins['reads'],
  list: number,
  accepts: (release: ListedRelease) => boolean,
): { id: string; release: ListedRelease }[] {
  const found: { id: string; release: ListedRelease }[] = []
  for (const { id, body } of reads.catalog.eachEntry(list)) {
    const item = JSON.parse(body.toString('utf8')) as Fields
    const release = listedRelease(fieldsOfItem(item, 'packages'))
    if (release !== null && accepts(release)) found.push({ id, release })
  }
  return found
}

/** Explains a missing path of a listed item: excluded by the scope, or not fetched yet. Throws `not_ready` for the latter. */
function excludedOrPending(config: Config, served: Origins, owner: string, path: string): Problem {
  if (served.reads.catalog.hasAnswers(owner)) throw notReady(served.reads, 'catalog', path)
  return outOfScope(config, served, path)
}

/** Throws `not_ready` where the settings of the scope have changed since what is stored was synced: the path may be in scope now. */
function throwIfChanged(config: Config, { reads }: Pick<Origins, 'reads'>, path: string): void {
  const changed = scopeToCome(reads, config, 'catalog')
  if (changed !== null) throw notSynced('catalog', path, changed)
}

/** An artifact set has no list: whether the service has this one, the mirror cannot know. */
function unnamed(config: Config, served: Pick<Origins, 'reads'>, path: string): Problem {
  throwIfChanged(config, served, path)
  const why = 'this artifact set is not stored; whether the service has it is not known here'
  return leftOut(catalogOwner(config), why, 'catalog.patterns')
}

/**
 * Nothing that was synced names it. Only the service knows whether it has it by now: no stored list contains what was created
 * since the last sync. Throws `not_ready` where the list that would name it is cut.
 */
function notListed(config: Config, what: string, incomplete: Incompleteness | null = null): Problem {
  const stored = `what is stored of the service's ${what} does not name it`
  requireWhole(incomplete, `this is not mirrored: ${stored}`)
  const named =
    incomplete === null
      ? `the service's ${what}, as of the last sync (X-Mirror-As-Of), did not name it`
      : `${stored}, and the end of that is not proved (${incomplete.reason})`
  const later = catalogOwner(config) === null ? 'is added by the next sync' : 'comes with a later sync or bundle'
  const message = `this is not mirrored: ${named}; what the service has created since ${later}`
  const [, value] = incompleteFields(incomplete)
  const headers = value === undefined ? {} : { headers: { 'X-Mirror-Incomplete': value } }
  return { status: 404, error: 'not_mirrored', message, ...headers }
}

/** A list names the item; the mirror did not ask for what this path of it answers. Throws `not_ready` as `throwIfChanged`. */
function outOfScope(config: Config, served: Pick<Origins, 'reads'>, path: string): Problem {
  throwIfChanged(config, served, path)
  throwIfUnread(config, served, path)
  return leftOutOfScope(config)
}

const SUBSCRIPTIONS = '/v1/subscriptions'

/** Throws `not_ready` where the scope is what the account subscribes to, and the subscriptions were never read. */
function throwIfUnread(config: Config, { reads }: Pick<Origins, 'reads'>, path: string): void {
  if (catalogOwner(config) !== null || config.catalog.scope !== 'subscribed') return
  const missing = reads.catalog.readMissingPath(SUBSCRIPTIONS)
  if (missing === null || reads.catalog.readList(SUBSCRIPTIONS) !== null) return
  const why = missing.reason ?? 'they could not be read'
  throw notFetched(path, `whether it is in scope is not known without the subscriptions (${why})`)
}

/** Explains why no artifact of a tag or an AVR was asked for. Throws `not_ready` where it may be in scope; `what` names it then. */
export function unaskedArtifact(config: Config, reads: Origins['reads'], owner: string, what: string): Problem {
  return owner.startsWith('tags/') ? outOfScope(config, { reads }, what) : unnamed(config, { reads }, what)
}

/** The answer for what a stored list names and the settings leave out. */
function leftOutOfScope(config: Config): Problem {
  const owner = catalogOwner(config)
  const whose = owner ?? 'this mirror'
  return leftOut(
    owner,
    `the service lists what this belongs to, but that is not in the scope of ${whose} and was not asked for`,
    'catalog.scope or catalog.patterns',
  )
}

const WRITER = 'the mirror that writes the fleet’s store'

/** The mirror whose settings decide what is stored here; null: this one. In a fleet it is the one that leads, which may be this one or another by now. */
function ownerOf({ upstream, fleet }: Config): string | null {
  if (fleet.url !== null) return WRITER
  return upstream.apiRoot === null ? 'the source mirror' : null
}

/** Does the same for the catalog, which this mirror may have stored and not sync: from a bundle, or by a key that it had. */
function catalogOwner(config: Config): string | null {
  const isSynced = activeSources(config).includes('catalog')
  return ownerOf(config) ?? (isSynced ? null : 'the mirror that syncs the catalog')
}

/** `owner`: the mirror on which the setting is to be set; null: this one. */
function leftOut(owner: string | null, why: string, setting: string): Problem {
  return notInScope(`${why}; to mirror it, set ${setting}${owner === null ? '' : ` on ${owner}`}`, setting)
}

/** The header tells another mirror that this 404 is no evidence. */
function notInScope(message: string, setting: string): Problem {
  const headers = { 'X-Mirror-Incomplete': setting }
  return { status: 404, error: 'not_in_scope', message, fields: { setting }, headers }
}

/** The canonical path of a route's template with a request's values. */
export function requestedPath(template: string, params: Params): string {
  const path = fillPath(template, params)
  return canonicalPath(path) ?? path
}
