import { MirrorError } from '../errors.ts'

/**
 * The value of a query parameter; null when it is not given, or empty. Throws `bad_request` when it is given twice:
 * whichever were taken, the client might have meant the other.
 */
export function onlyValue(query: URLSearchParams, name: string): string | null {
  const [value, ...more] = query.getAll(name)
  if (more.length > 0) {
    const message = `the query parameter ${name} is given ${more.length + 1} times: give it once`
    throw new MirrorError('bad_request', message)
  }
  return value === undefined || value === '' ? null : value
}
