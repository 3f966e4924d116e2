import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { MirrorError } from '../../src/base/errors.ts'
import { type LoadOptions, type LoadedConfig, loadConfig } from '../../src/config/load.ts'

/** A folder that is gone when the test ends. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Writes a file into a folder of its own and returns its path. */
export function fileWith(content: string | Buffer, name = 'patchmirror.yaml'): string {
  const path = join(scratch(), name)
  writeFileSync(path, content)
  return path
}

/** Loads with an empty environment by default. */
export function load(options: Partial<LoadOptions> = {}): LoadedConfig {
  return loadConfig({ env: {}, cwd: '/srv/mirror', ...options })
}

/** Loads the given YAML as the user's file. */
export function loadYaml(yaml: string, options: Partial<LoadOptions> = {}): LoadedConfig {
  return load({ file: fileWith(yaml), ...options })
}

/** The message of the MirrorError('config') that the action must end in. */
export function refusal(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    expect(error.code).toBe('config')
    return error.message
  }
  throw new Error('expected a refusal')
}
