import { afterAll } from 'vitest'
import { type Sandbox, type SandboxOptions, createSandbox } from './server.ts'

export const JSON_PATH = '/external/osv/all.json'
export const ZIP_PATH = '/external/osv/all.zip'

export function recordPath(id: string): string {
  return `/external/osv/${encodeURIComponent(id)}.json`
}

/** Sandboxes that are closed when the file's tests are done. */
export function sandboxes(): (options?: SandboxOptions) => Promise<Sandbox> {
  const open: Sandbox[] = []
  afterAll(() => Promise.all(open.splice(0).map((sandbox) => sandbox.close())))
  return async (options = {}) => {
    const sandbox = await createSandbox({ records: 60, ...options })
    open.push(sandbox)
    return sandbox
  }
}
