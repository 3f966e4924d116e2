import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { findTool, runTool } from '../support/tools.ts'

/** A command that is built from a Go module, by its version. */
export interface GoCommand {
  /** Path of the command's package, without a version. */
  readonly package: string
  readonly version: string
}

/** Kept between runs: a build takes minutes. */
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'patchmirror-clients')
/**
 * Longest time of one build, milliseconds; `CLIENTS_BUILD_UNTIL` (unix seconds) ends all builds of a run together.
 * A client that is not built by then is skipped by name.
 */
const BUILD_MS = 2_100_000

/** Longest time of an installation, milliseconds: packages are fetched as they are, so none waits for the end of all builds. */
const INSTALL_MS = 300_000

/** One core, so that builds are out of the way; without symbols, a program is linked with less time and memory. */
const BUILD_FLAGS = '-p=1 -ldflags=-s'

function buildMs(): number {
  const until = Number(process.env['CLIENTS_BUILD_UNTIL'] ?? Infinity) * 1000
  return Math.max(1, Math.min(BUILD_MS, until - Date.now()))
}

/** A command that was built, or why there is none. */
export type Built = { readonly path: string } | { readonly missing: string }

/** Builds a command once, on one core and out of the way of other work, and says so. Never throws. */
export async function buildGo({ package: name, version }: GoCommand): Promise<Built> {
  const command = name.slice(name.lastIndexOf('/') + 1)
  const folder = join(CACHE, `${command}-${version}`)
  const path = join(folder, command)
  if (existsSync(path)) return { path }
  const go = findTool('go')
  if (go === null) return { missing: 'go is not installed' }
  tell(`building ${name}@${version} into ${folder}; minutes, the first time`)
  const draft = `${folder}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  const env = { GOBIN: draft, GOFLAGS: BUILD_FLAGS }
  const ran = await gently(go, ['install', `${name}@${version}`], { env, timeoutMs: buildMs() })
  if (ran.code === 0) {
    mkdirSync(folder, { recursive: true })
    renameSync(join(draft, command), path)
  }
  rmSync(draft, { recursive: true, force: true })
  return ran.code === 0 ? { path } : { missing: whyNot(ran, ran.err) }
}

/** Installs a Python package once, in an environment of its own; the path of one of its commands. Never throws. */
export async function installPython(name: string, version: string, command: string): Promise<Built> {
  const folder = join(CACHE, `${name}-${version}`)
  const path = join(folder, 'bin', command)
  const done = join(folder, 'installed')
  if (existsSync(done)) return { path }
  const python = findTool('python3')
  if (python === null) return { missing: 'python3 is not installed' }
  tell(`installing ${name} ${version} into ${folder}`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const made = await gently(python, ['-m', 'venv', folder], { timeoutMs: INSTALL_MS })
  if (made.code !== 0) return { missing: whyNot(made, made.err + made.out) }
  const args = ['install', '--quiet', '--disable-pip-version-check', `${name}==${version}`]
  const ran = await gently(join(folder, 'bin/pip'), args, { timeoutMs: INSTALL_MS })
  if (ran.code !== 0 || !existsSync(path)) return { missing: whyNot(ran, ran.err + ran.out) }
  writeFileSync(done, '')
  return { path }
}

/** A small program of ours around a Go module. */
export interface GoProgram {
  readonly name: string
  /** Modules that it imports, with their versions. */
  readonly modules: Readonly<Record<string, string>>
  readonly source: string
}

/** Builds a program once, in a folder of its own. Throws only for a source that is not sound. */
export async function buildProgram({ name, modules, source }: GoProgram): Promise<Built> {
  const text = JSON.stringify([modules, source])
  const mark = createHash('sha256').update(text).digest('hex').slice(0, 12)
  const path = join(CACHE, `${name}-${mark}`, name)
  if (existsSync(path)) return { path }
  const go = findTool('go')
  if (go === null) return { missing: 'go is not installed' }
  tell(`building ${name} around ${Object.entries(modules).join(' ').replaceAll(',', '@')}`)
  const folder = mkdtempSync(join(tmpdir(), `patchmirror-${name}-`))
  mkdirSync(join(path, '..'), { recursive: true })
  try {
    const require = Object.entries(modules).map(([module, version]) => `${module} ${version}`)
    // With a version of Go, only what is needed of the modules' own requirements is fetched.
    const head = `module ${name}\n\ngo 1.24\n\n`
    writeFileSync(join(folder, 'go.mod'), `${head}require (\n${require.join('\n')}\n)\n`)
    writeFileSync(join(folder, 'main.go'), source)
    const options = { cwd: folder, env: { GOFLAGS: `${BUILD_FLAGS} -mod=mod` }, timeoutMs: buildMs() }
    const ran = await gently(go, ['build', '-o', `${path}.new`, '.'], options)
    if (/^\.\/main\.go:/m.test(ran.err)) throw new Error(`${name} is not sound: ${ran.err}`)
    if (ran.code !== 0) return { missing: whyNot(ran, ran.err) }
    renameSync(`${path}.new`, path)
    return { path }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Where a Go module's files lie, fetched when they do not yet; or why not. */
export async function fetchGoModule(module: string, version: string): Promise<Built> {
  const go = findTool('go')
  if (go === null) return { missing: 'go is not installed' }
  const args = ['mod', 'download', '-json', `${module}@${version}`]
  const { out, err } = await runTool(go, args, { timeoutMs: 300_000 })
  const { Dir, Error: error } = parse(out)
  return Dir === undefined ? { missing: reasonOf(error ?? err) } : { path: Dir }
}

/** Runs a command at the lowest priority. */
export function gently(
  path: string,
  args: readonly string[],
  options: Parameters<typeof runTool>[2],
): ReturnType<typeof runTool> {
  const nice = findTool('nice')
  return nice === null ? runTool(path, args, options) : runTool(nice, ['-n', '19', path, ...args], options)
}

/** A line for whoever waits. */
export function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}

function parse(json: string): { Dir?: string; Error?: string } {
  try {
    return JSON.parse(json) as { Dir?: string; Error?: string }
  } catch {
    return {}
  }
}

function whyNot({ code }: { code: number }, text: string): string {
  return code === -1 ? 'its build did not end in time' : reasonOf(text)
}

/** The last line that says something. */
export function reasonOf(text: string): string {
  return text.trim().split('\n').at(-1)?.trim() ?? 'it failed without a word'
}
