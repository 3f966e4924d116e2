import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { parsedDefaults } from './config/defaults.ts'

/**
 * Writes the bill of materials of the built program to dist, in CycloneDX: the libraries of package-lock.json that are
 * installed with the package. `npm sbom` names the component by its folder, which is replaced by the name of the package.
 */
const { name, version } = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest
const text = execFileSync(
  'npm',
  ['sbom', '--package-lock-only', '--omit=dev', '--sbom-format=cyclonedx', '--sbom-type=application'],
  { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 64 * 2 ** 20 },
)
const bom = JSON.parse(text) as Bom
const component = { ...bom.metadata.component, name, version }
const metadata = { ...bom.metadata, component }
writeFileSync('dist/sbom.cdx.json', `${JSON.stringify({ ...bom, metadata })}\n`)

// Every command reads the defaults: parsed ones save it the parser of YAML.
writeFileSync('dist/config/defaults.json', parsedDefaults())

interface Manifest {
  readonly name: string
  readonly version: string
}

interface Bom {
  readonly metadata: { readonly component: object }
}
