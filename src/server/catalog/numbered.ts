import { MirrorError } from '../../base/errors.ts'
import type { Frame } from '../../base/json/envelope.ts'
import { isOffset } from '../../base/json/list-names.ts'
import { onlyValue } from '../http/request-target.ts'

/**
 * Returns how many items come before the page that a request asks for by its number or an offset, as upstream's own lists are
 * asked; null where it does not. Throws `bad_request` for what is no number.
 */
export function readSkipped(query: URLSearchParams, { onward }: Pick<Frame, 'onward'>, limit: number): number | null {
  const param = onward?.param ?? null
  const isNumbered = onward?.firstPage !== undefined
  if (param === null || (!isNumbered && !isOffset(param))) return null
  const text = onlyValue(query, param)
  if (text === null) return null
  if (!/^\d{1,9}$/.test(text))
    throw new MirrorError('bad_request', `${param} must be a whole number of at most nine digits`)
  return isNumbered ? Math.max(0, Number(text) - (onward.firstPage ?? 0)) * limit : Number(text)
}
