// Materials of the scene. Without a graphics card the processor draws everything, with plain
// materials. `?quality=full` and `?quality=plain` override this.

import { THREE } from "../three/index.js";

const SOFTWARE = /swiftshader|llvmpipe|software|basic render/i;

export const plain = (() => {
  const wanted = new URLSearchParams(location.search).get("quality");
  if (wanted) return wanted === "plain";
  const context = document.createElement("canvas").getContext("webgl2");
  const extension = context?.getExtension("WEBGL_debug_renderer_info");
  const card = extension ? context.getParameter(extension.UNMASKED_RENDERER_WEBGL) : "";
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return SOFTWARE.test(card);
})();

const solid = (kind, options) => (color) =>
  plain ? new THREE.MeshLambertMaterial({ color }) : new THREE[kind]({ color, ...options });

export const paint = solid("MeshPhysicalMaterial", {
  roughness: 0.42, metalness: 0.05, clearcoat: 0.5, clearcoatRoughness: 0.3,
});
export const steel = solid("MeshStandardMaterial", { roughness: 0.38, metalness: 0.75 });
export const matt = solid("MeshStandardMaterial", { roughness: 0.75, metalness: 0.15 });

// With the colours of the vertices; full quality has a material for each colour instead.
export const tinted = () => new THREE.MeshLambertMaterial({ vertexColors: true });

export const ghost = (color) =>
  new THREE.MeshLambertMaterial({
    color, emissive: color, emissiveIntensity: 0.5, transparent: true, opacity: 0.36, depthWrite: false,
    polygonOffset: true, polygonOffsetFactor: 2, polygonOffsetUnits: 2, // behind the robot where both are
  });

export const zone = (color) =>
  new THREE.MeshLambertMaterial({ color, transparent: true, opacity: 0.14, depthWrite: false });

export const glow = (color, opacity) =>
  new THREE.MeshBasicMaterial({
    color, opacity, transparent: true, depthWrite: false, blending: THREE.AdditiveBlending,
  });
