import { readFileSync } from 'node:fs'
import { sha256Hex } from '../../base/digest.ts'

/** A file that pages refer to. */
export interface Asset {
  /** Path below the prefix of the pages; it contains the content's digest, so it never changes its content. */
  readonly path: string
  readonly type: string
  readonly body: Buffer
}

/** Files that pages refer to, by their use. */
interface Assets {
  readonly style: Asset
  readonly icon: Asset
}

/** Reads the files that pages refer to. */
export function readAssets(): Assets {
  return {
    style: readAsset('style.css', 'text/css; charset=utf-8'),
    icon: readAsset('icon.svg', 'image/svg+xml'),
  }
}

function readAsset(name: string, type: string): Asset {
  const body = readFileSync(new URL(`./templates/${name}`, import.meta.url))
  const digest = sha256Hex(body).slice(0, 16)
  const [stem = '', ending = ''] = name.split('.')
  return { path: `${stem}-${digest}.${ending}`, type, body }
}
