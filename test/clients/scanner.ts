import { runTool } from '../support/tools.ts'
import { type Built, buildGo } from './toolbox.ts'

/** Builds a version of osv-scanner, or says why it cannot be built. */
export function buildScanner(version: string): Promise<Built> {
  return buildGo({ package: 'github.com/google/osv-scanner/v2/cmd/osv-scanner', version })
}

/** A package that osv-scanner reports, and the ids of its vulnerabilities. */
export interface ScannedPackage {
  readonly name: string
  readonly version: string
  /** Empty: osv-scanner knows none. */
  readonly ecosystem: string
  readonly ids: readonly string[]
}

interface Report {
  results: {
    packages: {
      package: Omit<ScannedPackage, 'ids'>
      vulnerabilities?: { id: string }[]
    }[]
  }[]
}

/** What osv-scanner finds, offline, in files; `args`: more of its options. No packages where it writes no report. */
export async function scanFiles(
  path: string,
  database: string,
  files: readonly string[],
  args: readonly string[] = [],
): Promise<{ readonly packages: readonly ScannedPackage[]; readonly err: string }> {
  const scan = ['scan', 'source', '--offline', '--local-db-path', database, '--format', 'json']
  const named = files.flatMap((file) => ['-L', file])
  const { out, err } = await runTool(path, [...scan, ...args, ...named])
  const { results } = (out === '' ? { results: [] } : JSON.parse(out)) as Report
  const packages = results
    .flatMap((result) => result.packages)
    .map(({ package: named, vulnerabilities = [] }) => ({
      ...named,
      ids: vulnerabilities.map(({ id }) => id).sort(),
    }))
  return { packages, err }
}
