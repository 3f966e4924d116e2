import type { Config } from '../config/schema.ts'
import { canonicalPath, fillPath } from '../paths.ts'
import type { Resource } from '../resources.ts'
import { activeSources } from '../sources.ts'
import type { SourceName } from '../store/runs.ts'
import type { Moment } from './moment.ts'
import type { Origin } from './origin.ts'
import { type Problem, notReady } from './problem.ts'

/** What is said of a path that is not held. */
export interface Missing {
  /** The origin of a resource's source; a problem when the settings leave it out. Throws `not_ready` before its first snapshot. */
  origin(resource: Resource | null): Origin | Problem
  /** Upstream has none, the scope leaves it out, or it is still to be fetched. Throws `not_ready` for the last. */
  explain(resource: Resource | null, params: Params, path: string): Problem
}

type Params = Readonly<Record<string, string>>

/**
 * The three ways in which something can be missing, told apart: 404 only for what upstream does not have, a 404 that
 * names the setting for what this mirror leaves out, 503 for what is on its way.
 */
export function createMissing(config: Config, moment: Moment): Missing {
  const active = activeSources(config)
  /** What an import brought is held whatever the settings say: they are those of the mirror that it comes from. */
  const isHeld = ({ list }: Resource): boolean =>
    list !== null && moment.reads.readCatalogList(canonicalPath(list.path) ?? '') !== null
  const switchedOff = (resource: Resource): Problem | null => {
    const { setting, name } = resource
    if (setting === null || isHeld(resource)) return null
    if (setting === 'catalog.mirrorApiKeys' && !config.catalog.mirrorApiKeys)
      return leftOut(`${name} are personal data and not mirrored`, setting)
    if (setting === 'identity.mirrorUsers' && !config.identity.mirrorUsers)
      return leftOut(`${name} are personal data and not mirrored`, setting)
    return null
  }
  return {
    origin(resource) {
      const off = resource === null ? null : switchedOff(resource)
      if (off !== null) return off
      const source: SourceName = resource?.surface === 'identity' ? 'identity' : 'catalog'
      const known = moment.knownOrigin(source)
      if (known !== null || active.includes(source)) return moment.originOf(source)
      if (config.upstream.apiRoot === null)
        return leftOut(`no bundle that was imported has the ${source}`, 'upstream.apiKey above the gap') // prettier-ignore
      const setting =
        source === 'identity' ? 'identity.apiUrl and identity.apiKey' : 'upstream.apiKey'
      return leftOut(`this mirror has no credential for the ${source}`, setting)
    },
    explain(resource, params, path) {
      const { reads } = moment
      if (reads.isLacking(path)) throw notReady(path)
      if (resource === null) return explainRelease(params, path)
      if (resource.list === null) return resource.item === null ? unnamed() : unknown()
      const list = reads.readCatalogList(canonicalPath(resource.list.path) ?? '')
      if (list === null) throw notReady(path)
      const { id, repo } = params
      const found = repo === undefined ? (id ?? '') : reads.findHolding(list.id, [repo])
      if (found === null || reads.readCatalogEntry(list.id, found) === null) return unknown()
      if (resource.reach === 'always') throw notReady(path)
      return leftOrComing(`${resource.name}/${found}`, path)
    },
  }

  /** Of the package catalog, as far as the list of packages tells what there is. */
  function explainRelease(params: Params, path: string): Problem {
    if (config.upstream.apiRoot !== null && config.upstream.catalogUrl === null)
      return leftOut('the package catalog is not mirrored', 'upstream.catalogUrl')
    const { reads } = moment
    const list = reads.readCatalogList('/v1/packages')
    if (list === null) throw notReady(path)
    const { ecosystem = '', name = '' } = params
    const exact = reads.findByFields(list.id, params)
    if (exact !== null) return leftOrComing(`packages/${exact}`, path)
    // The name is there, that version or architecture of it is not.
    const other = reads.findByFields(list.id, { ecosystem, name })
    return other === null || reads.hasAnswers(`packages/${other}`) ? unknown() : outOfScope()
  }

  /** Listed: either the scope leaves it out, or its turn has not come. Throws `not_ready` for the latter. */
  function leftOrComing(owner: string, path: string): Problem {
    if (moment.reads.hasAnswers(owner)) throw notReady(path)
    return outOfScope()
  }
}

/** An artifact set has no list: whether the service has this one, the mirror cannot know. */
function unnamed(): Problem {
  return leftOut('nothing that this mirror holds names this artifact set', 'catalog.avrIds')
}

function unknown(): Problem {
  return { status: 404, error: 'not_found', message: 'the service has nothing under this path' }
}

function outOfScope(): Problem {
  return leftOut(
    'the service has this, but it is not in this mirror’s scope',
    'catalog.scope, catalog.include or catalog.exclude',
  )
}

function leftOut(why: string, setting: string): Problem {
  const message = `${why}; to mirror it, set ${setting}`
  return { status: 404, error: 'not_in_scope', message, fields: { setting } }
}

/** The canonical path of a route's template with a request's values. */
export function requestedPath(template: string, params: Params): string {
  const path = fillPath(template, params)
  return canonicalPath(path) ?? path
}
