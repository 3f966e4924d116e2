import { expect } from 'vitest'
import { longTest, test } from '../../../support/tables.ts'
import type { Sandbox, SandboxOptions } from '../../server.ts'
import { sandboxes } from '../../fixtures.ts'

const open = sandboxes()

interface Osv {
  upstream?: string[]
  affected: {
    package: { ecosystem: string; name: string }
    ranges: { events: { fixed?: string }[] }[]
  }[]
}

/** Packages by their upstream name in the records of the feed, with vulnerability and ecosystem; the value: has it a fix. */
function recorded({ feed }: Sandbox): Map<string, boolean> {
  const found = new Map<string, boolean>()
  for (const id of feed.ids()) {
    const { upstream = [], affected } = JSON.parse(feed.record(id).toString()) as Osv
    for (const { package: about, ranges } of affected) {
      const isFixed = ranges.some(({ events }) => events.some(({ fixed }) => fixed !== undefined))
      const base = about.ecosystem.split(':')[1]?.toLowerCase() ?? ''
      found.set(`${upstream.join()} ${base} ${about.name}`, isFixed)
    }
  }
  return found
}

const SBOM_PACKAGE = /"(pkg:(?:apk\/|deb\/)?(\w+)\/([^@"]+)@[^"#]+)"/g
const STATEMENTS = [
  /"name":"([^"]+)"\},"products":\[\{"@id":"([^"]+)"\}\],"status":"(\w+)"/g,
  /"id":"([^"]+)","source":\{[^}]*\},"analysis":\{"state":"(?<state>\w+)"[^}]*\},"affects":\[\{"ref":"([^"]+)"/g,
]

/** The states of the VEX statements of a tag that are about a package of its SBOM, and a record about this package. */
function statesOf(sandbox: Sandbox, tag: string, known: Map<string, boolean>): string[] {
  const [sbom, vex] = (['sbom', 'vex'] as const).map((kind) =>
    Buffer.concat(sandbox.service.documents('tag', tag, kind)).toString(),
  )
  const packages = new Map<string, string>()
  for (const [, purl = '', type = '', path = ''] of sbom?.matchAll(SBOM_PACKAGE) ?? []) {
    const name = path.split('/').map(decodeURIComponent).join(type === 'maven' ? ':' : '/')
    packages.set(purl, `${type} ${name}`)
  }
  return STATEMENTS.flatMap((form) => [...(vex?.matchAll(form) ?? [])]).flatMap((found) => {
    const [, vulnerability = '', second = '', third = ''] = found
    const isCycloneDx = found.groups?.['state'] !== undefined
    const [product, state] = isCycloneDx ? [third, second] : [second, third]
    const about = packages.get(product)
    return about !== undefined && known.has(`${vulnerability} ${about}`) ? [state] : []
  })
}

/** By tag, for remediated ones. */
function allStates(sandbox: Sandbox): string[][] {
  const known = recorded(sandbox)
  const { service } = sandbox
  const tags = service.ids('tags').filter((id) => service.read('tags', id)['remediated'] === true)
  return tags.map((tag) => statesOf(sandbox, tag, known))
}

const OPTIONS: SandboxOptions = { records: 1_500, seed: 4, service: { tags: 20 } }

longTest('VEX of a tag is about vulnerabilities that records have of packages in its own SBOM, in every state', async () => {
  const states = allStates(await open(OPTIONS))
  expect(states.filter((ofTag) => ofTag.length > 2).length).toBeGreaterThan(states.length / 2)
  expect(new Set(states.flat())).toEqual(
    new Set([
      ...['fixed', 'not_affected', 'affected', 'under_investigation'], // OpenVEX
      ...['resolved', 'exploitable', 'in_triage'], // CycloneDX
    ]),
  )
})

longTest('a VEX document that replaces another is about the same SBOM', async () => {
  const sandbox = await open(OPTIONS)
  const { service } = sandbox
  const known = recorded(sandbox)
  const tag = service.ids('tags')[3] ?? '' // its SBOM is that of the tag before
  const before = service.documents('tag', tag, 'vex')
  service.rotateArtifact('tag', tag, 'vex')
  expect(service.documents('tag', tag, 'vex')).not.toEqual(before)
  expect(statesOf(sandbox, tag, known).length).toBeGreaterThan(2)
})

test('the same seed gives the same VEX, and no records give VEX about other packages alone', async () => {
  const documents = ({ service }: Sandbox) =>
    service.ids('tags').map((id) => service.documents('tag', id, 'vex'))
  const one = await open(OPTIONS)
const other = await open(OPTIONS)
  expect(documents(one)).toEqual(documents(other))
  const without = allStates(await open({ ...OPTIONS, records: 0 }))
  expect(without.length).toBeGreaterThan(10)
  expect(without.flat()).toEqual([])
})

test('patches are also about records, with a fix and without, in every state', async () => {
  const sandbox = await open(OPTIONS)
  const known = recorded(sandbox)
  const found = { fixed: new Set<string>(), unfixed: new Set<string>() }
  for (const id of sandbox.service.ids('tickets')) {
    const ticket = sandbox.service.read('tickets', id) as Record<string, string>
    const { cve_id: cve = '', ecosystem = '', package_src_name: name = '' } = ticket
    const isFixed = known.get(`${cve} ${ecosystem} ${name}`)
    if (isFixed !== undefined)
      found[isFixed ? 'fixed' : 'unfixed'].add(ticket['ticket_status'] ?? '')
  }
  const all = new Set(['open', 'in_progress', 'done', 'deferred'])
  expect(found).toEqual({ fixed: all, unfixed: all })
})
