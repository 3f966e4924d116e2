import { resolve } from 'node:path'
import type { CheckContext, Parsed } from './base.ts'
import { briefReason, readNamedFile } from '../../base/files.ts'

/** PEM, and secrets and keys with their prefix. */
const MARKED = /-----BEGIN |^(?:(?:v1a?,)?wh(?:sec|sk)_|pmk_)/
/** What may be the base64 of a key: a long word of letters of both cases and digits. One that begins as an absolute path is padded. */
const BASE64 = /^(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?!\/.*[^=]$)[\w+/][\w+/-]{39,}={0,2}$/

/** Returns whether a text may be a key or a secret, so that no message may repeat it. */
export function isKeyMaterial(text: string): boolean {
  const given = text.trim()
  return MARKED.test(given) || BASE64.test(given)
}

/**
 * Reads the PEM file that a setting names, made absolute; `faultOf` returns what is wrong with its content. The text of a key or a
 * certificate in place of a path is refused as such.
 */
export function readPemFile(
  given: string,
  { cwd }: CheckContext,
  faultOf: (pem: string) => string | null,
): Parsed<string> {
  const file = resolve(cwd, given)
  try {
    const fault = faultOf(readNamedFile(file).toString('latin1'))
    return fault === null ? { value: file } : { fault }
  } catch (error) {
    if (isKeyMaterial(given))
      return { fault: 'is the text of a key or a certificate: give the path of a file that has it' }
    return { fault: `cannot be read (${briefReason(error, 'not a file name')})` }
  }
}
