// Paint, steel and plain matter. Without a graphics card everything is drawn by the processor: then
// without gloss. `?quality=full` and `?quality=plain` have the last word.

import { THREE } from "./three/index.js";

const SOFTWARE = /swiftshader|llvmpipe|software|basic render/i;

export const plain = (() => {
  const wish = new URLSearchParams(location.search).get("quality");
  if (wish) return wish === "plain";
  const context = document.createElement("canvas").getContext("webgl2");
  const named = context?.getExtension("WEBGL_debug_renderer_info");
  const card = named ? context.getParameter(named.UNMASKED_RENDERER_WEBGL) : "";
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return SOFTWARE.test(card);
})();

const matter = (kind, figures) => (color) =>
  plain ? new THREE.MeshLambertMaterial({ color }) : new THREE[kind]({ color, ...figures });

export const paint = matter("MeshPhysicalMaterial", {
  roughness: 0.42, metalness: 0.05, clearcoat: 0.5, clearcoatRoughness: 0.3,
});
export const steel = matter("MeshStandardMaterial", { roughness: 0.38, metalness: 0.75 });
export const matt = matter("MeshStandardMaterial", { roughness: 0.75, metalness: 0.15 });

export const spirit = (color) =>
  new THREE.MeshLambertMaterial({
    color, emissive: color, emissiveIntensity: 0.5, transparent: true, opacity: 0.36, depthWrite: false,
  });

export const veil = (color) =>
  new THREE.MeshLambertMaterial({ color, transparent: true, opacity: 0.14, depthWrite: false });

export const glow = (color, opacity) =>
  new THREE.MeshBasicMaterial({
    color, opacity, transparent: true, depthWrite: false, blending: THREE.AdditiveBlending,
  });
