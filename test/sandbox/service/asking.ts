import { expect } from 'vitest'
import type { Sandbox } from '../server.ts'
import { SANDBOX_KEYS } from './credentials.ts'

/** An answer with its body as bytes and, where it is JSON, as a value. */
export interface Asked {
  status: number
  headers: Headers
  bytes: Buffer
  value: Json
}

/** A JSON object whose members are whatever the test says they are. */
export type Json = Record<string, unknown>

export interface Asking {
  method?: string
  headers?: Record<string, string>
  body?: unknown
}

export function basic(key: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` }
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}

/** One request, redirects not followed. */
export async function ask(url: string, { method = 'GET', headers = {}, body }: Asking = {}): Promise<Asked> {
  const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  const answer = await fetch(url, {
    method,
    headers: { ...json, ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const bytes = Buffer.from(await answer.arrayBuffer())
  return { status: answer.status, headers: answer.headers, bytes, value: parse(bytes) }
}

/** Asks the remediation surface or the settings with the admin's key; `path` begins with /v1 or /v3. */
export function asAdmin(sandbox: Sandbox, path: string, asking: Asking = {}): Promise<Asked> {
  return ask(sandbox.url + path, {
    ...asking,
    headers: { ...basic(SANDBOX_KEYS.admin), ...asking.headers },
  })
}

/** Expects that no two things of a kind have one id. */
export function expectDistinctIds({ service }: Sandbox): void {
  for (const kind of ['images', 'tags', 'packages', 'tickets', 'avrs', 'users'] as const) {
    const ids = service.ids(kind)
    expect([kind, new Set(ids).size]).toEqual([kind, ids.length])
  }
}

/** Every item of a list in the published form, walked by its cursor; `path` without a query. */
export async function walk(
  sandbox: Sandbox,
  path: string,
  limit: number,
  key = 'data',
  query = '',
): Promise<{ items: Json[]; pages: number }> {
  const items: Json[] = []
  let after: string | undefined
  for (let pages = 1; ; pages++) {
    const cursor = after === undefined ? '' : `&after=${encodeURIComponent(after)}`
    const { value } = await asAdmin(sandbox, `${path}?limit=${limit}${query}${cursor}`)
    items.push(...(value[key] as Json[]))
    const next = (value['cursor'] as { after?: string | null }).after ?? ''
    if (next === '') return { items, pages }
    after = next
  }
}

function parse(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString()) as Json
  } catch {
    return {}
  }
}
