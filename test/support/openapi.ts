import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { OpenApiDocument } from '../../src/server/contract/openapi.ts'

/** A document as it is served. */
export type ServedContract = Pick<OpenApiDocument, 'paths' | 'components'>

/** An answer as a contract sees it. */
export interface Answered {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly headers: Headers
}

/** Header fields that HTTP itself has. */
const PLAIN = /^(connection|content-length|content-type|date|keep-alive|transfer-encoding)$/

/** Returns what a body in JSON has that its schema in the contract does not describe, or describes otherwise. */
export function createBodyCheck(contract: ServedContract): (name: string, body: unknown) => string[] {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
  ajv.addSchema({ $id: 'contract', components: withoutOthers(contract.components) })
  return (name, body) => {
    const check = ajv.getSchema(`contract#/components/schemas/${name}`)
    if (check === undefined) throw new Error(`no schema ${name}`)
    return check(body) === true ? [] : faultsOf(check.errors ?? [], name)
  }
}

/** Returns what a body in JSON has that a description of src/base/reports does not have, or has otherwise. */
export function faultsBy(description: object, body: unknown): string[] {
  const schema = withoutOthers(JSON.parse(JSON.stringify(description))) as object
  const check = new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(schema)
  return check(body) ? [] : faultsOf(check.errors ?? [], '')
}

function faultsOf(errors: readonly ErrorObject[], name: string): string[] {
  return errors.map(
    ({ instancePath, message, params }) => `${name}${instancePath}: ${message} ${JSON.stringify(params)}`,
  )
}

/** Each described object of the answers of the mirror itself has the described members alone. */
function withoutOthers(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withoutOthers)
  if (typeof part !== 'object' || part === null) return part
  const copy = Object.fromEntries(Object.entries(part).map(([key, one]) => [key, withoutOthers(one)]))
  const isClosed = 'properties' in part && 'required' in part
  return isClosed && !('additionalProperties' in part) ? { ...copy, additionalProperties: false } : copy
}

/** A part of a document with the members that are looked at. */
interface Part {
  readonly content?: object
  readonly headers?: Readonly<Record<string, object>>
  readonly required?: boolean
}

/** Follows a reference, if it is one. */
export function resolve({ components }: ServedContract, part: object): Part {
  if (!('$ref' in part)) return part
  const [, kind = '', name = ''] = /^#\/components\/(\w+)\/(.+)$/.exec(String(part.$ref)) ?? []
  const found = components[kind]?.[name]
  if (found === undefined) throw new Error(`no component ${String(part.$ref)}`)
  return found
}

/** The path of the document that a request is for; undefined where there is none. */
export function templateOf({ paths }: ServedContract, path: string): string | undefined {
  const asked = path.replace(/\?.*$/, '')
  const fits = (template: string): boolean => {
    const form = template
      .replace(/[.*+?^$()|[\]\\]/g, '\\$&')
      .replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === 'repo' ? '.+' : '[^/]+'))
    return new RegExp(`^${form}$`).test(asked)
  }
  const fixed = (template: string): number => template.replaceAll(/\{\w+\}/g, '').length
  return Object.keys(paths)
    .filter(fits)
    .sort((one, other) => fixed(other) - fixed(one))[0]
}

/** What an answer has that the contract does not declare, and what it misses; empty when it keeps to the contract. */
export function violations(contract: ServedContract, answered: Answered): string[] {
  const { method, path, status, headers } = answered
  const template = templateOf(contract, path) ?? ''
  const name = method === 'HEAD' ? 'get' : method.toLowerCase()
  const declared = contract.paths[template]?.[name]?.responses[status]
  if (declared === undefined) return [`${method} ${path}: ${status} is not declared`]
  const answer = resolve(contract, declared)
  const type = (headers.get('content-type') ?? '').split(';', 1)[0] ?? ''
  const types = Object.keys(answer.content ?? {})
  const isKnown = types.includes(type) || types.includes('*/*') || types.length === 0
  const found = isKnown ? [] : [`media type ${type}`]
  if (types.length === 0 && type !== '' && status !== 304) found.push(`media type ${type}`)
  const known = new Map(
    Object.entries(answer.headers ?? {}).map(([key, one]) => [
      key.toLowerCase(),
      resolve(contract, one).required === true,
    ]),
  )
  for (const key of headers.keys()) if (!PLAIN.test(key) && !known.has(key)) found.push(`header ${key} is not declared`)
  for (const [key, required] of known) if (required && !headers.has(key)) found.push(`header ${key} is missing`)
  return found.map((fault) => `${method} ${path}: ${status}: ${fault}`)
}
