import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { sha256Hex } from '../../src/base/digest.ts'
import { VERSION } from '../../src/base/version.ts'
import { runTool } from '../support/tools.ts'

/* The steps of the Dockerfile, in a folder instead of an image: no container engine is needed. */

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-image-'))
const app = join(dir, 'app')
/** Longest time of one step, milliseconds. */
const PATIENCE_MS = 240_000
/** The Node of this process is the one that a step finds first. */
const env = { PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}` }

afterAll(() => {
  rmSync(dir, { recursive: true, force: true })
})

/** Returns the steps of the first two stages, in which the program is built and its libraries are installed. */
function buildSteps(): string[] {
  const stages = readFileSync('Dockerfile', 'utf8').split(/^FROM .*$/m)
  return stages
    .slice(1, 3)
    .flatMap((stage) => stage.split('\n'))
    .filter((line) => /^(COPY|RUN) /.test(line))
}

async function run(step: string): Promise<void> {
  const [kind, ...words] = step.split(' ')
  if (kind === 'COPY') {
    const target = join(app, words.at(-1) ?? '')
    for (const source of words.slice(0, -1)) {
      const isFolder = words.length === 2 && !source.includes('.')
      cpSync(source, isFolder ? target : join(target, basename(source)), { recursive: true })
    }
    return
  }
  const ran = await runTool('/bin/sh', ['-c', words.join(' ')], {
    cwd: app,
    env,
    timeoutMs: PATIENCE_MS,
  })
  expect(ran.code, `${step}\n${ran.out}${ran.err}`).toBe(0)
}

test('the steps of the image build the program, and it runs with the libraries that they install', async () => {
  mkdirSync(app)
  const steps = buildSteps()
  expect(steps).toContain('RUN npm run build')
  for (const step of steps) await run(step)
  const ran = await runTool(process.execPath, ['dist/main.js', '--version'], { cwd: app, env })
  expect([ran.code, ran.out]).toEqual([0, `${VERSION}\n`])
  // Without the settings in its first stage the image would parse the defaults at each start.
  const defaults = readFileSync(join(app, 'dist/config/defaults.json'), 'utf8')
  expect(defaults).toContain(sha256Hex(readFileSync('config/default.yaml')))
  // An image is used as it is, so it can reach the object store of a fleet.
  expect(existsSync(join(app, 'node_modules/@aws-sdk/client-s3/package.json'))).toBe(true)
})
