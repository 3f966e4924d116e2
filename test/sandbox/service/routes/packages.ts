import type { Representation } from '../../feed/representation.ts'
import { type Call, type Reply, ServiceError, missing } from '../request.ts'
import type { PackageDetail } from '../data/packages.ts'
import type { Parts } from '../parts.ts'
import type { Route } from '../router.ts'
import { recordReply } from '../replies.ts'
import type { ArtifactKind } from '../shapes/artifact.ts'
import { worded } from '../shapes/record.ts'
import { artifactsOf, asked, get, itemRow, listRow } from './artifacts.ts'

/** Packages and their artifacts (service API, section 4). */
export function packageRoutes(parts: Parts): Route[] {
  const { packages } = parts.state
  const artifacts = (kind: ArtifactKind): Route =>
    get(`/v1/packages/{pkgID}/artifacts/${kind}`, 'artifact', (call) => {
      const { id } = asked(call, packages, 'package')
      return artifactsOf(parts, call, { kind: 'package', id }, kind)
    })
  return [
    listRow('/v1/packages/', packages, parts.shape),
    itemRow('/v1/packages/{pkgID}/', packages, 'package', parts.shape),
    artifacts('patches'),
    artifacts('provenance'),
  ]
}

const ROOT = '/packages/ecosystems/{ecosystem}/packages/{name}/versions'

/** The public package catalog (service API, section 4). Names with slashes come encoded or as they are. */
export function catalogRoutes(parts: Parts): Route[] {
  return [
    get(ROOT, 'item', (call) => versions(parts, call)),
    get(`${ROOT}/{version}/cves`, 'item', (call) => {
      const { first, about } = versionOf(parts, call)
      const { cves } = first.detail as PackageDetail
      const shown = cves.map((cve_id) => ({ cve_id, status: 'fixed', fixed_in: about.version }))
      return releaseReply(parts, { ...about, cves: shown }, first.lastModified)
    }),
    get(`${ROOT}/{version}/details`, 'item', (call) => {
      const { first, all, about } = versionOf(parts, call)
      const { package_purl: purl, src_name, updated_at } = first.listed
      const archs = all.map(({ listed }) => listed.arch)
      const shown = { ...about, src_name, purl, archs, ...first.detail, updated_at }
      return releaseReply(parts, shown, first.lastModified)
    }),
    get(`${ROOT}/{version}/provenance/{arch}`, 'artifact', (call) => {
      const { all } = versionOf(parts, call)
      const arch = call.params[3] ?? ''
      const built = all.find(({ listed }) => listed.arch === arch)
      if (built === undefined) throw missing('architecture of this version', arch)
      return artifactsOf(parts, call, { kind: 'package', id: built.id }, 'provenance')
    }),
  ]
}

/** Every package of that ecosystem and name, both known, in the order in which they came. */
function named({ state: { packages } }: Parts, { params: [ecosystem = '', name = ''] }: Call) {
  const found = packages.select(`${ecosystem}/${name}`, () =>
    packages.all().filter(({ listed }) => listed.ecosystem === ecosystem && listed.name === name),
  )
  const [first] = found
  if (first === undefined) {
    throw new ServiceError(404, `the catalog has no package ${name} of ${ecosystem}`)
  }
  return { found, first }
}

function versions(parts: Parts, call: Call): Reply {
  const { found } = named(parts, call)
  const [ecosystem = '', name = ''] = call.params
  const byVersion = Map.groupBy(found, ({ listed }) => listed.version)
  const shown = [...byVersion].map(([version, built]) => ({
    version,
    archs: built.map(({ listed }) => listed.arch),
    updated_at: built.map(({ listed }) => listed.updated_at).reduce((a, b) => (a > b ? a : b)),
  }))
  const { lists, records } = parts.shape
  const at = parts.state.packages.lastModified()
  const about = { ecosystem, name }
  const key = lists.items.at(-1)
  if (key === 'data') return releaseReply(parts, { ...about, versions: shown }, at)
  const versions = shown.map((one) => worded(records, 'release', one))
  return recordReply(key === undefined ? versions : { package: about, [key]: versions }, at)
}

/** Returns the package catalog's answer about a release, in the form of the shape. */
function releaseReply({ shape }: Parts, record: object, lastModified: number): Representation {
  return recordReply(worded(shape.records, 'release', record), lastModified)
}

function versionOf(parts: Parts, call: Call) {
  const [ecosystem = '', name = '', version = ''] = call.params
  const all = named(parts, call).found.filter(({ listed }) => listed.version === version)
  const [first] = all
  if (first === undefined) throw missing(`version of ${name}`, version)
  return { all, first, about: { ecosystem, name, version } }
}
